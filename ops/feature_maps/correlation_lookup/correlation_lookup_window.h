// SPDX-License-Identifier: Apache-2.0
// Positions of windows, shared by the kernels and the references of the lookup and of its gradient.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// The pixels along one axis that a window reads: `first` and the 2 * radius + 1 after it.
struct LookupWindow {
  int64_t first = 0;
  float fraction = 0;  // the weight of the second of two neighbours, in [0, 1]
};

/// Finds the pixels around a position. Returns false if the window reads nothing: the position is NaN or far away, or
/// all pixels are outside of [0, size). The reference has positions in double.
template <class F>
POLYOP_HD bool FindLookupWindow(F at, int64_t radius, int64_t size, LookupWindow* window) {
  constexpr F kFar = 1099511627776;
  if (!(at > -kFar && at < kFar)) return false;
  const F floor = std::floor(at);
  window->first = static_cast<int64_t>(floor) - radius;
  window->fraction = static_cast<float>(at - floor);
  return window->first < size && window->first + 2 * radius + 2 > 0;
}

}  // namespace polyop

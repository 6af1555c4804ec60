// SPDX-License-Identifier: Apache-2.0
// The points of a grid, for CUDA kernels.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// Normalised points [N, ..., axes].
template <class T, int kAxes>
struct GridPoints {
  static constexpr bool kInPixels = false;
  const T* grid;
  int64_t points;  // per image

  POLYOP_HD void At(int64_t image, int64_t point, float at[kAxes]) const {
    const T* const from = grid + (image * points + point) * kAxes;
    for (int a = 0; a < kAxes; ++a) at[a] = ToFloat(from[a]);
  }
};

}  // namespace polyop

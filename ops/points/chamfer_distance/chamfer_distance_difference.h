// SPDX-License-Identifier: Apache-2.0
// The derivative of a squared distance, on CPU and GPU.
#pragma once

#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// Adds twice `grad` times the difference of two points to `sum`, unless a coordinate is not finite.
template <class T>
POLYOP_HD void AddDifference(const T* from, const T* to, T grad, int64_t coordinates, float* sum) {
  float difference[3] = {0, 0, 0};
  for (int64_t a = 0; a < coordinates; ++a) {
    const float x = ToFloat(from[a]), y = ToFloat(to[a]);
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    difference[a] = x - y;
  }
  for (int64_t a = 0; a < coordinates; ++a) sum[a] += 2 * ToFloat(grad) * difference[a];
}

}  // namespace polyop

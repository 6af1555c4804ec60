// SPDX-License-Identifier: Apache-2.0
// The rule for singular matrices, shared by kernels and reference.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// Returns the power of two that scales the largest magnitude of a row or column to [0.5, 1). Returns 1 for 0, and NaN,
/// which propagates, for NaN and infinity.
POLYOP_HD inline double InverseScale(double largest) {
  if (!std::isfinite(largest)) return NAN;
  if (largest == 0) return 1;
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, -exponent);
}

/// Pivots of a scaled matrix of `size` rows up to this magnitude are treated as rounding errors of 0.
POLYOP_HD inline double MinPivot(int64_t size) { return 0x1p-50 * static_cast<double>(size); }

/// Returns whether `value` can be a pivot. NaN cannot.
POLYOP_HD inline bool IsPivot(double value, int64_t size) { return std::fabs(value) > MinPivot(size); }

/// Returns the larger magnitude; NaN is propagated.
POLYOP_HD inline double LargerMagnitude(double largest, double value) {
  const double magnitude = std::fabs(value);
  return magnitude > largest || magnitude != magnitude ? magnitude : largest;
}

}  // namespace polyop

// When a matrix counts as singular: kernels and reference decide alike.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// The power of two that brings the greatest magnitude of a row or column to [0.5, 1). Of 0 it is 1; of NaN and
/// infinity NaN, which spreads.
POLYOP_HD inline double InverseScale(double greatest) {
  if (!std::isfinite(greatest)) return NAN;
  if (greatest == 0) return 1;
  int exponent = 0;
  std::frexp(greatest, &exponent);
  return std::ldexp(1.0, -exponent);
}

/// Of a scaled matrix of `size` rows: pivots up to this are what rounding leaves of 0.
POLYOP_HD inline double LeastPivot(int64_t size) { return 0x1p-50 * static_cast<double>(size); }

/// NaN is no pivot.
POLYOP_HD inline bool IsPivot(double value, int64_t size) { return std::fabs(value) > LeastPivot(size); }

/// The greater magnitude; NaN stays.
POLYOP_HD inline double GreaterMagnitude(double greatest, double value) {
  const double magnitude = std::fabs(value);
  return magnitude > greatest || magnitude != magnitude ? magnitude : greatest;
}

}  // namespace polyop

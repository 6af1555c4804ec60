// SPDX-License-Identifier: Apache-2.0
// The source positions of the pixels of a rotated image.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

struct Rotation {
  double sine, cosine_minus_one;
  double x, y;  // the center of rotation
  bool nearest;

  POLYOP_HD static Rotation Make(double degrees, double x, double y, bool nearest) {
    const double radians = degrees * kRadians, half = std::sin(radians / 2);
    return {std::sin(radians), -2 * half * half, x, y, nearest};
  }
  POLYOP_HD bool IsFinite() const { return std::isfinite(sine) && std::isfinite(x) && std::isfinite(y); }
  /// Computes the source position of a pixel, in pixel indices; with `nearest`, the index of the nearest pixel. The
  /// position is computed as an offset from the pixel, so a rotation by 0 is exact however far away the center is.
  POLYOP_HD void SourceOf(int64_t row, int64_t column, float at[2]) const {
    const double u = static_cast<double>(column) + 0.5 - x, v = static_cast<double>(row) + 0.5 - y;
    at[0] = Rounded(static_cast<double>(column) + (u * cosine_minus_one + v * sine));
    at[1] = Rounded(static_cast<double>(row) + (v * cosine_minus_one - u * sine));
  }
  /// Adds to `sums` the gradients of the degrees and of the center's x and y, for the gradient `grad` of SourceOf. With
  /// `nearest` there are none.
  POLYOP_HD void AddSlopes(int64_t row, int64_t column, const float grad[2], double sums[3]) const {
    const double u = static_cast<double>(column) + 0.5 - x, v = static_cast<double>(row) + 0.5 - y;
    const double of_x = grad[0], of_y = grad[1], cosine = cosine_minus_one + 1;
    sums[0] += (of_x * (v * cosine - u * sine) - of_y * (v * sine + u * cosine)) * kRadians;
    sums[1] += of_y * sine - of_x * cosine_minus_one;
    sums[2] -= of_x * sine + of_y * cosine_minus_one;
  }

 private:
  static constexpr double kRadians = -0.017453292519943295;  // of a degree, counter-clockwise

  POLYOP_HD float Rounded(double position) const {
    return static_cast<float>(nearest ? std::nearbyint(position) : position);
  }
};

}  // namespace polyop

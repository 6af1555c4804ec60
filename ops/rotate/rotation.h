// Where a turned picture's pixels come from.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

struct Rotation {
  double sine, cosine_less_one;
  double x, y;  // the point that is turned about
  bool nearest;

  POLYOP_HD static Rotation Make(double degrees, double x, double y, bool nearest) {
    const double radians = degrees * -0.017453292519943295, half = std::sin(radians / 2);
    return {std::sin(radians), -2 * half * half, x, y, nearest};
  }
  /// As a pixel's number; where the nearest is wanted, of that. A shift from where the pixel is: without a turn there
  /// is none, however far away the point is.
  POLYOP_HD void SourceOf(int64_t row, int64_t column, float at[2]) const {
    const double u = static_cast<double>(column) + 0.5 - x, v = static_cast<double>(row) + 0.5 - y;
    at[0] = Rounded(static_cast<double>(column) + (u * cosine_less_one + v * sine));
    at[1] = Rounded(static_cast<double>(row) + (v * cosine_less_one - u * sine));
  }

 private:
  POLYOP_HD float Rounded(double position) const {
    return static_cast<float>(nearest ? std::nearbyint(position) : position);
  }
};

}  // namespace polyop

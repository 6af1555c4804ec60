// Bilinear samples of a plane, pixel by pixel: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace polyop::reference {

/// RoIAlign's rule: 0 beyond -1 and the extents; up to there the border's value. NaN is outside.
inline double SampleClamped(const double* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width)) ||
      height * width == 0)
    return 0;
  y = std::clamp<double>(y, 0, static_cast<double>(height - 1));
  x = std::clamp<double>(x, 0, static_cast<double>(width - 1));
  double sum = 0;
  for (int64_t row = static_cast<int64_t>(y); row <= std::min(static_cast<int64_t>(y) + 1, height - 1); ++row) {
    for (int64_t column = static_cast<int64_t>(x); column <= std::min(static_cast<int64_t>(x) + 1, width - 1);
         ++column) {
      sum += (1 - std::abs(y - static_cast<double>(row))) * (1 - std::abs(x - static_cast<double>(column))) *
             plane[row * width + column];
    }
  }
  return sum;
}

}  // namespace polyop::reference

// SPDX-License-Identifier: Apache-2.0
// Bilinear samples of a plane, pixel by pixel: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace polyop::reference {

/// RoIAlign's rule: returns true for positions from -1 to the extents. NaN is outside.
inline bool IsInside(int64_t height, int64_t width, double y, double x) {
  return y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width) &&
         height * width != 0;
}

/// Calls visit(pixel, weight) for the up to four pixels of a bilinear sample. A position outside has none; one that is
/// up to a pixel outside of the border is moved to the border.
template <class Visit>
void ForEachPixel(int64_t height, int64_t width, double y, double x, const Visit& visit) {
  if (!IsInside(height, width, y, x)) return;
  y = std::clamp<double>(y, 0, static_cast<double>(height - 1));
  x = std::clamp<double>(x, 0, static_cast<double>(width - 1));
  for (int64_t row = static_cast<int64_t>(y); row <= std::min(static_cast<int64_t>(y) + 1, height - 1); ++row) {
    for (int64_t column = static_cast<int64_t>(x); column <= std::min(static_cast<int64_t>(x) + 1, width - 1);
         ++column) {
      visit(row * width + column,
            (1 - std::abs(y - static_cast<double>(row))) * (1 - std::abs(x - static_cast<double>(column))));
    }
  }
}

/// Returns a bilinear sample of a plane; 0 outside.
inline double SampleClamped(const double* plane, int64_t height, int64_t width, double y, double x) {
  double sum = 0;
  ForEachPixel(height, width, y, x, [&](int64_t pixel, double weight) { sum += weight * plane[pixel]; });
  return sum;
}

/// The gradient of SampleClamped with respect to the plane: adds weight * grad to each pixel whose weight is not 0.
inline void AddSampleClamped(double* plane, int64_t height, int64_t width, double y, double x, double grad) {
  ForEachPixel(height, width, y, x, [&](int64_t pixel, double weight) {
    if (weight != 0) plane[pixel] += weight * grad;
  });
}

}  // namespace polyop::reference

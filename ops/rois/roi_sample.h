// SPDX-License-Identifier: Apache-2.0
// A bilinear sample of a plane by RoIAlign's rule.
#pragma once

#include "core/dtype.h"
#include "ops/rois/roi_axis.h"

namespace polyop {

struct RoiSample {
  LinearTaps y, x;

  /// Returns 0 if the sample is outside. At the border, the pixel beyond is not read, so that infinity stays infinity.
  template <class T>
  POLYOP_HD float Of(const T* plane, int64_t width) const {
    if (!y.inside || !x.inside) return 0;
    const float low = Across(plane + y.low * width);
    if (y.high == y.low) return low * y.low_weight;
    return low * y.low_weight + Across(plane + y.high * width) * y.high_weight;
  }

  /// Calls add(Tap) for the pixels of a plane whose weight is not 0.
  template <class Add>
  POLYOP_HD void ForEachTap(int64_t width, const Add& add) const {
    for (int k = 0; y.inside && x.inside && k < 4; ++k) {
      const float weight = (k / 2 ? y.high_weight : y.low_weight) * (k % 2 ? x.high_weight : x.low_weight);
      const int32_t row = k / 2 ? y.high : y.low, column = k % 2 ? x.high : x.low;
      if (weight != 0) add(Tap{row * static_cast<int32_t>(width) + column, weight});
    }
  }

  /// Returns the largest of the four weighted pixels, ignoring NaN. A pixel with weight 0 counts as 0.
  template <class T>
  POLYOP_HD float LargestCorner(const T* plane, int64_t width) const {
    if (!y.inside || !x.inside) return 0;
    float largest = -INFINITY;
    for (int k = 0; k < 4; ++k) {
      const float weight = (k / 2 ? y.high_weight : y.low_weight) * (k % 2 ? x.high_weight : x.low_weight);
      const int64_t pixel = (k / 2 ? y.high : y.low) * width + (k % 2 ? x.high : x.low);
      const float value = weight == 0 ? 0 : ToFloat(plane[pixel]) * weight;
      largest = value > largest ? value : largest;
    }
    return largest;
  }

 private:
  template <class T>
  POLYOP_HD float Across(const T* row) const {
    const float low = ToFloat(row[x.low]) * x.low_weight;
    return x.high == x.low ? low : low + ToFloat(row[x.high]) * x.high_weight;
  }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// The weighted pixels of the bins of a RoI.
#pragma once

#include <algorithm>

#include "ops/rois/prroi_pool/prroi_pool_bins.h"
#include "ops/rois/roi_axis.h"

namespace polyop {

/// The taps of a RoI, for PoolByTaps, ScatterByTaps and ScatterBinsCuda.
struct PreciseTaps {
  PreciseRoi roi;
  int64_t height, width, columns;

  double TapsBound() const {
    return std::min(roi.y.size + 4, static_cast<double>(height)) * std::min(roi.x.size + 4, static_cast<double>(width));
  }
  template <class Add>
  POLYOP_HD void ForEachTap(int64_t bin, const Add& add) const {
    const PreciseBin down = roi.y.Bin(bin / columns, height), across = roi.x.Bin(bin % columns, width);
    for (int64_t row = down.first; row < down.last; ++row) {
      const double row_weight = down.WeightOf(row);
      for (int64_t column = across.first; column < across.last; ++column) {
        const auto weight = static_cast<float>(row_weight * across.WeightOf(column));
        if (weight != 0) add(Tap{static_cast<int32_t>(row * width + column), weight});
      }
    }
  }
};

/// The middle of a row (batch index, x1, y1, x2, y2), in pixels.
struct PreciseMiddle {
  double y, x;

  template <class T>
  static PreciseMiddle Of(const PrRoiPool& op, const T* row) {
    const auto middle = [&](T low, T high) {
      return (static_cast<double>(ToFloat(low)) + ToFloat(high)) / 2 * op.spatial_scale;
    };
    return {middle(row[2], row[4]), middle(row[1], row[3])};
  }
};

}  // namespace polyop

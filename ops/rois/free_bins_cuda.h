// SPDX-License-Identifier: Apache-2.0
// The gradient of pooling of RoIs whose bins are at arbitrary positions (free_bins_pool.h), on the GPU.
#pragma once

#include "ops/rois/free_bins_pool.h"
#include "ops/rois/scatter_bins_cuda.h"

namespace polyop {

#include "ops/rois/axis_pixels-inl.h"

/// A RoI for ScatterBinsCuda. Bins is a type like that of FreeBinsTable::Make: with y, x and Start(bin).
template <class Bins>
struct FreeBins {
  Bins bins;
  int64_t height, width;

  template <class Add>
  POLYOP_HD void ForEachTap(int64_t bin, const Add& add) const {
    const BinStart start = bins.Start(bin);
    RoiAxis down = bins.y, across = bins.x;
    const double samples = static_cast<double>(down.samples) * static_cast<double>(across.samples);
    if (samples == 0 || !(std::fabs(start.y) < INFINITY && std::fabs(start.x) < INFINITY)) return;
    down.start = start.y;
    across.start = start.x;
    const auto scale = static_cast<float>(1 / samples);
    ForEachPixel(down, height, [&](int32_t row, float row_weight) {
      ForEachPixel(across, width, [&](int32_t column, float weight) {
        add(Tap{row * static_cast<int32_t>(width) + column, row_weight * weight * scale});
      });
    });
  }
};

}  // namespace polyop

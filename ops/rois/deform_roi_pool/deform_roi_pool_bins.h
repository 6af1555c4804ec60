// SPDX-License-Identifier: Apache-2.0
// A roi with bins shifted by offsets.
#pragma once

#include "ops/rois/deform_roi_pool/deform_roi_pool.h"
#include "ops/rois/free_bins_pool.h"

namespace polyop {

template <class T>
struct ShiftedBins {
  RoiAxis y, x;           // of the roi: `start` is the start of its first bin
  double step_y, step_x;  // shift of a bin by an offset of 1, in pixels
  const T* offset;        // [2, bins], x before y, or null
  int64_t bins, columns;

  /// Returns the bins of roi number r. `roi` is its row; `offsets` are those of all rois, or null.
  POLYOP_HD static ShiftedBins Make(const DeformRoiPool& op, const T* roi, const T* offsets, int64_t r) {
    const int64_t bins = op.pooled_height * op.pooled_width, ratio = op.Samples();
    ShiftedBins shifted{
        RoiAxis::Make(ToFloat(roi[2]), ToFloat(roi[4]), op.spatial_scale, true, op.pooled_height, ratio),
        RoiAxis::Make(ToFloat(roi[1]), ToFloat(roi[3]), op.spatial_scale, true, op.pooled_width, ratio),
        0,
        0,
        offsets != nullptr ? offsets + r * 2 * bins : nullptr,
        bins,
        op.pooled_width};
    shifted.step_y = op.gamma * shifted.y.bin * static_cast<double>(op.pooled_height);
    shifted.step_x = op.gamma * shifted.x.bin * static_cast<double>(op.pooled_width);
    return shifted;
  }
  POLYOP_HD BinStart Start(int64_t bin) const {
    BinStart at{y.start + y.bin * static_cast<double>(bin / columns),
                x.start + x.bin * static_cast<double>(bin % columns)};
    if (offset == nullptr) return at;
    at.y += step_y * ToFloat(offset[bins + bin]);
    at.x += step_x * ToFloat(offset[bin]);
    return at;
  }
};

}  // namespace polyop

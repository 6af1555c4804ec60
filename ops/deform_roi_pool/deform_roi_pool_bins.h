// A roi whose bins are moved.
#pragma once

#include "families/rois/placed_pool.h"
#include "ops/deform_roi_pool/deform_roi_pool.h"

namespace polyop {

template <class T>
struct MovedBins {
  RoiAxis y, x;           // of the roi: `start` is where its first bin begins
  double step_y, step_x;  // by which an offset of 1 moves a bin, in pixels
  const T* offset;        // [2, bins], x before y, or null
  int64_t bins, columns;

  /// `roi` is a row, `offsets` those of all rois or null. The roi's number is r.
  POLYOP_HD static MovedBins Make(const DeformRoiPool& op, const T* roi, const T* offsets, int64_t r) {
    const int64_t bins = op.pooled_height * op.pooled_width, ratio = op.Samples();
    MovedBins made{RoiAxis::Make(ToFloat(roi[2]), ToFloat(roi[4]), op.spatial_scale, true, op.pooled_height, ratio),
                   RoiAxis::Make(ToFloat(roi[1]), ToFloat(roi[3]), op.spatial_scale, true, op.pooled_width, ratio),
                   0,
                   0,
                   offsets != nullptr ? offsets + r * 2 * bins : nullptr,
                   bins,
                   op.pooled_width};
    made.step_y = op.gamma * made.y.bin * static_cast<double>(op.pooled_height);
    made.step_x = op.gamma * made.x.bin * static_cast<double>(op.pooled_width);
    return made;
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

// A roi whose bins are moved.
#pragma once

#include <cmath>

#include "families/rois/roi_axis.h"
#include "ops/deform_roi_pool/deform_roi_pool.h"

namespace polyop {

template <class T>
struct MovedBins {
  RoiAxis y, x;
  double step_y, step_x;  // by which an offset of 1 moves a bin, in pixels
  const T* offset;        // [2, bins], x before y, or null
  int64_t bins, columns;

  /// `roi` is a row, `offsets` those of all rois or null. The roi's number is r.
  POLYOP_HD static MovedBins Make(const DeformRoiPool& op, const T* roi, const T* offsets, int64_t r) {
    const int64_t bins = op.pooled_height * op.pooled_width, ratio = static_cast<int64_t>(op.sampling_ratio);
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
  /// The axes that a bin's samples lie on; without samples if the bin is moved away for ever.
  POLYOP_HD void AxesOf(int64_t bin, RoiAxis* down, RoiAxis* across) const {
    *down = y;
    *across = x;
    if (offset == nullptr) return;
    down->start += step_y * ToFloat(offset[bins + bin]);
    across->start += step_x * ToFloat(offset[bin]);
    if (!std::isfinite(down->start) || !std::isfinite(across->start)) down->samples = across->samples = 0;
  }
  POLYOP_HD double samples() const { return static_cast<double>(y.samples) * static_cast<double>(x.samples); }
};

}  // namespace polyop

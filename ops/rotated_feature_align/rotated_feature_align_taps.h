// The weighted pixels whose sum is an output pixel.
#pragma once

#include "families/rois/roi_sample.h"
#include "ops/rotated_feature_align/rotated_feature_align_points.h"

namespace polyop {

/// The taps of an image, for ScatterByTaps and ScatterBinsCuda. The bins are its pixels: a pixel is the sum of itself
/// and of its box's samples.
template <class T>
struct ImageTaps {
  RotatedFeatureAlign op;
  const T* boxes;
  int64_t height, width;

  double TapsBound() const { return 1 + 4 * static_cast<double>(op.points); }
  template <class Add>
  [[gnu::always_inline]] POLYOP_HD void ForEachTap(int64_t pixel, const Add& add) const {
    add(Tap{static_cast<int32_t>(pixel), 1.0f});
    ForEachPoint(op, boxes + pixel * 5,
                 [&](double y, double x) { RoiSample{RoiTaps(y, height), RoiTaps(x, width)}.ForEachTap(width, add); });
  }
};

}  // namespace polyop

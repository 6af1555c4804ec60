// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/rotated_feature_align/rotated_feature_align_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/rois/roi_axis.h"
#include "ops/rois/rotated_feature_align/rotated_feature_align_backward.h"
#include "ops/rois/rotated_feature_align/rotated_feature_align_points.h"
#include "ops/rois/scatter_by_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// An image, whose bins are its pixels: a pixel is the sum of itself and of its box's samples.
template <class T>
struct ImageTaps {
  const RotatedFeatureAlign& op;
  const T* boxes;
  int64_t height, width;

  double TapsBound() const { return 1 + 4 * static_cast<double>(op.points); }
  template <class Add>
  void ForEachTap(int64_t pixel, const Add& add) const {
    add(Tap{static_cast<int32_t>(pixel), 1.0f});
    ForEachPoint(op, boxes + pixel * 5, [&](double y, double x) HWY_ATTR {
      const LinearTaps rows = RoiTaps(y, height), columns = RoiTaps(x, width);
      if (!rows.inside || !columns.inside) return;
      for (int k = 0; k < 4; ++k) {
        const float weight =
            (k / 2 ? rows.high_weight : rows.low_weight) * (k % 2 ? columns.high_weight : columns.low_weight);
        const int32_t row = k / 2 ? rows.high : rows.low, column = k % 2 ? columns.high : columns.low;
        if (weight != 0) add(Tap{row * static_cast<int32_t>(width) + column, weight});
      }
    });
  }
};

template <class T>
Status RotatedFeatureAlignBackwardCpu(const RotatedFeatureAlignBackward& op, const Context& context,
                                      Tensor<const T, 4> grad_output, Tensor<const T, 4> features,
                                      Tensor<const T, 4> boxes, Tensor<T, 4> grad_features) {
  const int64_t images = features.dim(0), height = features.dim(2), width = features.dim(3), pixels = height * width;
  return ScatterByTaps<T>(
      context, {features.data(), height, width, 1.0}, images, features.dim(1), images, pixels,
      [](int64_t n) { return RoiSortKey{n, 0, 0, n}; },
      [&](int64_t n) { return ImageTaps<T>{op, boxes.data() + n * pixels * 5, height, width}; }, grad_output.data(),
      grad_features.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(RotatedFeatureAlignBackward, RotatedFeatureAlignBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif

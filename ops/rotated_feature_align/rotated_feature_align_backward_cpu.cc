#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rotated_feature_align/rotated_feature_align_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/scatter_by_taps-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rotated_feature_align/rotated_feature_align_backward.h"
#include "ops/rotated_feature_align/rotated_feature_align_taps.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

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

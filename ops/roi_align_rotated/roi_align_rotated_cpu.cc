#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/roi_align_rotated/roi_align_rotated_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/rois.h"
#include "families/rois/turned_pool-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/roi_align_rotated/roi_align_rotated.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status RoiAlignRotatedCpu(const RoiAlignRotated& op, const Context& context, Tensor<const T, 4> input,
                          Tensor<const T, 2> rois, Tensor<T, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const RoiLevel<T> level{input.data(), input.dim(2), input.dim(3), op.spatial_scale};
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned, true};
  return PoolRotatedRois<T>(context, {&level, 1}, input.dim(1), rois.dim(0), {rois.data(), op.clockwise}, how,
                            output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(RoiAlignRotated, RoiAlignRotatedF32, RoiAlignRotatedCpu<float>);
POLYOP_CPU_KERNEL(RoiAlignRotated, RoiAlignRotatedF16, RoiAlignRotatedCpu<Half>);
POLYOP_CPU_KERNEL(RoiAlignRotated, RoiAlignRotatedBF16, RoiAlignRotatedCpu<BFloat16>);
}  // namespace polyop
#endif

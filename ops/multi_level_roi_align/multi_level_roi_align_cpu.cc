#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/multi_level_roi_align/multi_level_roi_align_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/roi_levels.h"
#include "core/roi_pool-inl.h"
#include "core/rois.h"
#include "core/simd.h"
#include "ops/multi_level_roi_align/multi_level_roi_align.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status MultiLevelRoiAlignCpu(const MultiLevelRoiAlign& op, const Context& context, Tensor<const T, 2> rois,
                             TensorList<const T, 4> feats, Tensor<T, 4> output) {
  if (op.featmap_strides.size() != feats.size()) {
    return InvalidArgument("attribute 'featmap_strides' has ", op.featmap_strides.size(),
                           " values, wanted one for each of the ", feats.size(), " 'feats'");
  }
  const int64_t batch = feats[0].dim(0), channels = feats[0].dim(1);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, batch));
  std::array<RoiLevel<T>, TensorList<const T, 4>::kMax> levels;
  for (int l = 0; l < feats.size(); ++l) {
    levels[static_cast<size_t>(l)] = {feats[l].data(), feats[l].dim(2), feats[l].dim(3), 1.0 / op.featmap_strides[l]};
  }
  const auto box_of = [&](int64_t r, float box[4]) {
    for (int k = 0; k < 4; ++k) box[k] = ToFloat(rois[5 * r + 1 + k]);
    if (!(op.roi_scale_factor > 0)) return;
    for (int k = 0; k < 2; ++k) {
      const float centre = (box[k] + box[k + 2]) * 0.5f, half = (box[k + 2] - box[k]) * op.roi_scale_factor * 0.5f;
      box[k] = centre - half;
      box[k + 2] = centre + half;
    }
  };
  const auto level_of = [&](int64_t r) {
    const T* roi = rois.data() + 5 * r;
    return RoiLevelOf(static_cast<double>(ToFloat(roi[3])) - ToFloat(roi[1]),
                      static_cast<double>(ToFloat(roi[4])) - ToFloat(roi[2]), static_cast<double>(op.finest_scale),
                      feats.size());
  };
  const auto picture_of = [&](int64_t r) { return static_cast<int64_t>(ToFloat(rois[5 * r])); };
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned,
                       op.pool_mode == MultiLevelRoiAlign::PoolMode::kAvg};
  return PoolRois<T>(context, {levels.data(), static_cast<size_t>(feats.size())}, channels, rois.dim(0), box_of,
                     picture_of, level_of, how, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(MultiLevelRoiAlign, MultiLevelRoiAlignF32, MultiLevelRoiAlignCpu<float>);
POLYOP_CPU_KERNEL(MultiLevelRoiAlign, MultiLevelRoiAlignF16, MultiLevelRoiAlignCpu<Half>);
POLYOP_CPU_KERNEL(MultiLevelRoiAlign, MultiLevelRoiAlignBF16, MultiLevelRoiAlignCpu<BFloat16>);
}  // namespace polyop
#endif

// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ops/rois/batch_indices.h"
#include "ops/rois/multi_level_roi_align/multi_level_roi_align_backward.h"
#include "ops/rois/roi_levels.h"
#include "ops/rois/upright_backward.h"

namespace polyop {
namespace {

template <class T>
Status MultiLevelRoiAlignBackwardCpu(const MultiLevelRoiAlignBackward& op, const Context& context,
                                     Tensor<const T, 4> grad_output, Tensor<const T, 2> rois,
                                     TensorList<const T, 4> feats, Tensor<T, 1> grad_feats) {
  std::array<RoiLevel<T>, TensorList<const T, 4>::kMax> levels;
  PyramidLevels(op.featmap_strides, feats, levels.data());
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, feats[0].dim(0)));
  const UprightRois<T> boxes{rois.data(), op.roi_scale_factor, static_cast<double>(op.finest_scale), feats.size()};
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned,
                       op.pool_mode == MultiLevelRoiAlign::PoolMode::kAvg};
  return PoolRoisBackward<T>(context, {levels.data(), static_cast<size_t>(feats.size())}, feats[0].dim(0),
                             feats[0].dim(1), rois.dim(0), boxes, how, grad_output.data(), grad_feats.data());
}

POLYOP_PLAIN_CPU_KERNELS(MultiLevelRoiAlignBackward, MultiLevelRoiAlignBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

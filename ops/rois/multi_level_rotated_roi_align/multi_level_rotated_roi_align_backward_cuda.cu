// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/multi_level_rotated_roi_align/multi_level_rotated_roi_align_backward.h"
#include "ops/rois/scatter_bins_cuda.h"

namespace polyop {
namespace {

template <class T>
Status MultiLevelRotatedRoiAlignBackwardCuda(const MultiLevelRotatedRoiAlignBackward& op, const CudaContext& cuda,
                                             Tensor<const T, 4> grad_output, Tensor<const T, 2> rois,
                                             TensorList<const T, 4> feats, Tensor<T, 1> grad_feats) {
  RoiLevel<T> levels[TensorList<const T, 4>::kMax];
  PyramidLevels(op.featmap_strides, feats, levels);
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned, true};
  T* to = grad_feats.data();
  for (int32_t l = 0; l < feats.size(); ++l) {
    const Tensor<T, 4> grad_feat(to, feats[l].shape());
    to += grad_feat.size();
    if (grad_feat.size() == 0) continue;
    const RotatedBinGrads<T> grads{
        BinGrads<T>::Of(rois, grad_output),
        {rois.data(), op.clockwise, op.roi_scale_factor, static_cast<double>(op.finest_scale), feats.size()},
        levels[l].height,
        levels[l].width,
        levels[l].scale,
        how,
        l};
    POLYOP_RETURN_IF_ERROR(ScatterBinsCuda<T>(cuda, rois.dim(0), grads.bins, grads, grad_feat));
  }
  return Status::Ok();
}

POLYOP_ATOMIC_CUDA_KERNELS(MultiLevelRotatedRoiAlignBackward, MultiLevelRotatedRoiAlignBackwardCuda, float, Half,
                           BFloat16);

}  // namespace
}  // namespace polyop

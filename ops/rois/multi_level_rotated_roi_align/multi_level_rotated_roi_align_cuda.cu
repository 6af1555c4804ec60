// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/multi_level_rotated_roi_align/multi_level_rotated_roi_align.h"
#include "ops/rois/roi_pool_cuda.h"

namespace polyop {
namespace {

template <class T>
Status MultiLevelRotatedRoiAlignCuda(const MultiLevelRotatedRoiAlign& op, const CudaContext& cuda,
                                     Tensor<const T, 2> rois, TensorList<const T, 4> feats, Tensor<T, 4> output) {
  RoiPyramid<T> pyramid{{}, feats[0].dim(0), feats[0].dim(1)};
  PyramidLevels(op.featmap_strides, feats, pyramid.level);
  const RotatedRois<T> boxes{rois.data(), op.clockwise, op.roi_scale_factor, static_cast<double>(op.finest_scale),
                             feats.size()};
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned, true};
  return PoolRotatedRoisCuda<T>(cuda, pyramid, boxes, rois.dim(0), how, output.data());
}

POLYOP_CUDA_KERNELS(MultiLevelRotatedRoiAlign, MultiLevelRotatedRoiAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

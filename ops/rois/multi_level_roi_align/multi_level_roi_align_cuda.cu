// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/multi_level_roi_align/multi_level_roi_align.h"
#include "ops/rois/roi_pool_cuda.h"

namespace polyop {
namespace {

template <class T>
Status MultiLevelRoiAlignCuda(const MultiLevelRoiAlign& op, const CudaContext& cuda, Tensor<const T, 2> rois,
                              TensorList<const T, 4> feats, Tensor<T, 4> output) {
  RoiPyramid<T> pyramid{{}, feats[0].dim(0), feats[0].dim(1)};
  PyramidLevels(op.featmap_strides, feats, pyramid.level);
  const UprightRois<T> boxes{rois.data(), op.roi_scale_factor, static_cast<double>(op.finest_scale), feats.size()};
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned,
                       op.pool_mode == MultiLevelRoiAlign::PoolMode::kAvg};
  return PoolRoisCuda<T>(cuda, pyramid, boxes, rois.dim(0), how, output.data());
}

POLYOP_CUDA_KERNELS(MultiLevelRoiAlign, MultiLevelRoiAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

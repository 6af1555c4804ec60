// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/onnx_roi_align/onnx_roi_align.h"
#include "ops/rois/roi_pool_cuda.h"

namespace polyop {
namespace {

template <class T>
Status OnnxRoiAlignCuda(const OnnxRoiAlign& op, const CudaContext& cuda, Tensor<const T, 4> x, Tensor<const T, 2> rois,
                        Tensor<const int64_t, 1> batch_indices, Tensor<T, 4> y) {
  RoiPyramid<T> pyramid{{}, x.dim(0), x.dim(1)};
  pyramid.level[0] = {x.data(), x.dim(2), x.dim(3), op.spatial_scale};
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned(),
                       op.mode == OnnxRoiAlign::Mode::kAvg};
  const UprightRois<T> boxes{.rows = rois.data(), .images = batch_indices.data()};
  return PoolRoisCuda<T>(cuda, pyramid, boxes, rois.dim(0), how, y.data());
}

POLYOP_CUDA_KERNELS(OnnxRoiAlign, OnnxRoiAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_pool_backward_cuda.h"
#include "ops/rois/tensorrt_roi_align/tensorrt_roi_align_backward.h"

namespace polyop {
namespace {

template <class T, class I>
Status TensorrtRoiAlignBackwardCuda(const TensorrtRoiAlignBackward& op, const CudaContext& cuda,
                                    Tensor<const T, 4> grad_y, Tensor<const T, 4> x, Tensor<const T, 2> rois,
                                    Tensor<const I, 1> batch_indices, Tensor<T, 4> grad_x) {
  RoiPyramid<T> pyramid{{}, x.dim(0), x.dim(1)};
  pyramid.level[0] = {x.data(), x.dim(2), x.dim(3), op.spatial_scale};
  const bool average = op.mode == TensorrtRoiAlign::Mode::kAvg;
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned(), average, !average};
  const I* const indices = batch_indices.data();
  int64_t* const images = cuda.Allocate<int64_t>(batch_indices.size());
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, batch_indices.size(), [=] POLYOP_DEVICE(int64_t r) { images[r] = indices[r]; }));
  const UprightRois<T> boxes{.rows = rois.data(), .images = images};
  return PoolRoisBackwardCuda<T>(cuda, pyramid, boxes, rois.dim(0), how, grad_y.data(), grad_x.data());
}

POLYOP_ATOMIC_CUDA_KERNELS(TensorrtRoiAlignBackward, TensorrtRoiAlignBackwardCuda, (float, int32_t), (Half, int32_t),
                           (BFloat16, int32_t), (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop

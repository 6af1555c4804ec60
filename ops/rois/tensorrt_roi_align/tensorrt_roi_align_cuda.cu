// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_pool_cuda.h"
#include "ops/rois/tensorrt_roi_align/tensorrt_roi_align.h"

namespace polyop {
namespace {

template <class T>
Status TensorrtRoiAlignI64(const TensorrtRoiAlign& op, const CudaContext& cuda, Tensor<const T, 4> x,
                           Tensor<const T, 2> rois, Tensor<const int64_t, 1> batch_indices, Tensor<T, 4> y) {
  RoiPyramid<T> pyramid{{}, x.dim(0), x.dim(1)};
  pyramid.level[0] = {x.data(), x.dim(2), x.dim(3), op.spatial_scale};
  const bool average = op.mode == TensorrtRoiAlign::Mode::kAvg;
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned(), average, !average};
  const UprightRois<T> boxes{.rows = rois.data(), .images = batch_indices.data()};
  return PoolRoisCuda<T>(cuda, pyramid, boxes, rois.dim(0), how, y.data());
}

template <class T>
Status TensorrtRoiAlignI32(const TensorrtRoiAlign& op, const CudaContext& cuda, Tensor<const T, 4> x,
                           Tensor<const T, 2> rois, Tensor<const int32_t, 1> batch_indices, Tensor<T, 4> y) {
  int64_t* const wide = cuda.Allocate<int64_t>(batch_indices.size());
  const int32_t* const indices = batch_indices.data();
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, batch_indices.size(), [=] POLYOP_DEVICE(int64_t r) { wide[r] = indices[r]; }));
  return TensorrtRoiAlignI64<T>(op, cuda, x, rois, Tensor<const int64_t, 1>(wide, batch_indices.shape()), y);
}

POLYOP_CUDA_KERNELS(TensorrtRoiAlign, TensorrtRoiAlignI32, float, Half, BFloat16);
POLYOP_CUDA_KERNELS(TensorrtRoiAlign, TensorrtRoiAlignI64, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

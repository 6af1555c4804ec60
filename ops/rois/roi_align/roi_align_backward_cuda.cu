// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_align/roi_align_backward.h"
#include "ops/rois/roi_pool_backward_cuda.h"

namespace polyop {
namespace {

template <class T>
Status RoiAlignBackwardCuda(const RoiAlignBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                            Tensor<const T, 4> input, Tensor<const T, 2> rois, Tensor<T, 4> grad_input) {
  RoiPyramid<T> pyramid{{}, input.dim(0), input.dim(1)};
  pyramid.level[0] = {input.data(), input.dim(2), input.dim(3), op.spatial_scale};
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned,
                       op.mode == RoiAlign::Mode::kAvg};
  return PoolRoisBackwardCuda<T>(cuda, pyramid, {rois.data()}, rois.dim(0), how, grad_output.data(), grad_input.data());
}

POLYOP_ATOMIC_CUDA_KERNELS(RoiAlignBackward, RoiAlignBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

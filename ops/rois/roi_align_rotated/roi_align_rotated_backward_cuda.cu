// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_align_rotated/roi_align_rotated_backward.h"
#include "ops/rois/scatter_bins_cuda.h"

namespace polyop {
namespace {

template <class T>
Status RoiAlignRotatedBackwardCuda(const RoiAlignRotatedBackward& op, const CudaContext& cuda,
                                   Tensor<const T, 4> grad_output, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                                   Tensor<T, 4> grad_input) {
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned, true};
  const RotatedBinGrads<T> grads{BinGrads<T>::Of(rois, grad_output),
                                 {rois.data(), op.clockwise},
                                 input.dim(2),
                                 input.dim(3),
                                 op.spatial_scale,
                                 how};
  return ScatterBinsCuda<T>(cuda, rois.dim(0), grads.bins, grads, grad_input);
}

POLYOP_ATOMIC_CUDA_KERNELS(RoiAlignRotatedBackward, RoiAlignRotatedBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

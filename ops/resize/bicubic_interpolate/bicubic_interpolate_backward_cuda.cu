// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_interpolate/bicubic_interpolate_backward.h"
#include "ops/resize/bicubic_resize_backward_cuda.h"

namespace polyop {
namespace {

template <class T>
Status BicubicInterpolateBackwardCuda(const BicubicInterpolateBackward& op, const CudaContext& cuda,
                                      Tensor<const T, 4> grad_output, Tensor<const T, 4> input,
                                      Tensor<T, 4> grad_input) {
  return BicubicResizeBackwardCuda(cuda, grad_output, AxisOf(op, input.shape(), grad_output.shape(), 2),
                                   AxisOf(op, input.shape(), grad_output.shape(), 3), grad_input);
}

POLYOP_CUDA_KERNELS(BicubicInterpolateBackward, BicubicInterpolateBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

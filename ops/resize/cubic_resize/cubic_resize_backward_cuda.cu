// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_resize_backward_cuda.h"
#include "ops/resize/cubic_resize/cubic_resize_backward.h"

namespace polyop {
namespace {

template <class T>
Status CubicResizeBackwardCuda(const CubicResizeBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                               Tensor<const T, 4> input, Tensor<const int64_t, 1>, Tensor<T, 4> grad_input) {
  return BicubicResizeBackwardCuda(cuda, grad_output, op.Axis(input.dim(2), grad_output.dim(2)),
                                   op.Axis(input.dim(3), grad_output.dim(3)), grad_input);
}

POLYOP_CUDA_KERNELS(CubicResizeBackward, CubicResizeBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

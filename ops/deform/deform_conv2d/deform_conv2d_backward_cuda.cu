// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv2d/deform_conv2d_backward.h"
#include "ops/deform/deform_conv_backward_cuda.h"

namespace polyop {
namespace {

template <class T>
Status DeformConv2dBackwardCuda(const DeformConv2dBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                                Tensor<const T, 4> input, Tensor<const T, 4> offset, Tensor<const T, 4> weight,
                                std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_offset,
                                std::optional<Tensor<T, 4>> grad_weight) {
  const DeformConvGradientsCuda<T> gradients{grad_input, grad_offset, std::nullopt, grad_weight, std::nullopt};
  return DeformConvBackwardCuda<T>(op, cuda, grad_output, input, offset.data(), nullptr, weight, gradients);
}

POLYOP_ATOMIC_CUDA_KERNELS(DeformConv2dBackward, DeformConv2dBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_backward_cuda.h"
#include "ops/deform/modulated_deform_conv2d/modulated_deform_conv2d_backward.h"

namespace polyop {
namespace {

template <class T>
Status ModulatedDeformConv2dBackwardCuda(const ModulatedDeformConv2dBackward& op, const CudaContext& cuda,
                                         Tensor<const T, 4> grad_output, Tensor<const T, 4> input,
                                         Tensor<const T, 4> offset, Tensor<const T, 4> mask, Tensor<const T, 4> weight,
                                         std::optional<Tensor<T, 4>> grad_input,
                                         std::optional<Tensor<T, 4>> grad_offset, std::optional<Tensor<T, 4>> grad_mask,
                                         std::optional<Tensor<T, 4>> grad_weight,
                                         std::optional<Tensor<T, 1>> grad_bias) {
  const DeformConvGradientsCuda<T> gradients{grad_input, grad_offset, grad_mask, grad_weight, grad_bias};
  return DeformConvBackwardCuda<T>(op, cuda, grad_output, input, offset.data(), mask.data(), weight, gradients);
}

POLYOP_ATOMIC_CUDA_KERNELS(ModulatedDeformConv2dBackward, ModulatedDeformConv2dBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

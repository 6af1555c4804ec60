// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_backward.h"
#include "ops/deform/modulated_deform_conv2d/modulated_deform_conv2d_backward.h"

namespace polyop {
namespace {

template <class T>
Status ModulatedDeformConv2dBackwardCpu(const ModulatedDeformConv2dBackward& op, const Context& context,
                                        Tensor<const T, 4> grad_output, Tensor<const T, 4> input,
                                        Tensor<const T, 4> offset, Tensor<const T, 4> mask, Tensor<const T, 4> weight,
                                        std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_offset,
                                        std::optional<Tensor<T, 4>> grad_mask, std::optional<Tensor<T, 4>> grad_weight,
                                        std::optional<Tensor<T, 1>> grad_bias) {
  const DeformConvGradients<T> gradients{
      grad_input ? grad_input->data() : nullptr, grad_offset ? grad_offset->data() : nullptr,
      grad_mask ? grad_mask->data() : nullptr, grad_weight ? grad_weight->data() : nullptr,
      grad_bias ? grad_bias->data() : nullptr};
  return DeformConvBackward<T>(context, op, grad_output, input, offset.data(), mask.data(), weight, gradients);
}

POLYOP_PLAIN_CPU_KERNELS(ModulatedDeformConv2dBackward, ModulatedDeformConv2dBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

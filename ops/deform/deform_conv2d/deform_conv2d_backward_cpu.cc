// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv2d/deform_conv2d_backward.h"
#include "ops/deform/deform_conv_backward.h"

namespace polyop {
namespace {

template <class T>
Status DeformConv2dBackwardCpu(const DeformConv2dBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                               Tensor<const T, 4> input, Tensor<const T, 4> offset, Tensor<const T, 4> weight,
                               std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_offset,
                               std::optional<Tensor<T, 4>> grad_weight) {
  const DeformConvGradients<T> gradients{grad_input ? grad_input->data() : nullptr,
                                         grad_offset ? grad_offset->data() : nullptr, nullptr,
                                         grad_weight ? grad_weight->data() : nullptr, nullptr};
  return DeformConvBackward<T>(context, op, grad_output, input, offset.data(), nullptr, weight, gradients);
}

POLYOP_PLAIN_CPU_KERNELS(DeformConv2dBackward, DeformConv2dBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_backward.h"
#include "ops/deform/openvino_deform_conv2d/openvino_deform_conv2d_backward.h"

namespace polyop {
namespace {

template <class T>
Status OpenvinoDeformConv2dBackwardCpu(const OpenvinoDeformConv2dBackward& op, const Context& context,
                                       Tensor<const T, 4> grad_output, Tensor<const T, 4> input,
                                       Tensor<const T, 4> offset, Tensor<const T, 4> weight,
                                       std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_offset,
                                       std::optional<Tensor<T, 4>> grad_weight) {
  const DeformConvGradients<T> gradients{grad_input ? grad_input->data() : nullptr,
                                         grad_offset ? grad_offset->data() : nullptr, nullptr,
                                         grad_weight ? grad_weight->data() : nullptr, nullptr};
  return DeformConvBackward<T>(context, op.Rule(), grad_output, input, offset.data(), nullptr, weight, gradients);
}

POLYOP_PLAIN_CPU_KERNELS(OpenvinoDeformConv2dBackward, OpenvinoDeformConv2dBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

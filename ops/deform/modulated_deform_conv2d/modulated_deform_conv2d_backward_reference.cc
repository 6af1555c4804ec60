// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_backward_reference.h"
#include "ops/deform/modulated_deform_conv2d/modulated_deform_conv2d_backward.h"

namespace polyop {
namespace {

Status ModulatedDeformConv2dBackwardReference(
    const ModulatedDeformConv2dBackward& op, const Context&, Tensor<const double, 4> grad_output,
    Tensor<const double, 4> input, Tensor<const double, 4> offset, Tensor<const double, 4> mask,
    Tensor<const double, 4> weight, std::optional<Tensor<double, 4>> grad_input,
    std::optional<Tensor<double, 4>> grad_offset, std::optional<Tensor<double, 4>> grad_mask,
    std::optional<Tensor<double, 4>> grad_weight, std::optional<Tensor<double, 1>> grad_bias) {
  return reference::DeformConvBackward(
      op, grad_output, input, offset, mask.data(), weight,
      {grad_input ? grad_input->data() : nullptr, grad_offset ? grad_offset->data() : nullptr,
       grad_mask ? grad_mask->data() : nullptr, grad_weight ? grad_weight->data() : nullptr,
       grad_bias ? grad_bias->data() : nullptr});
}
POLYOP_REFERENCE_KERNEL(ModulatedDeformConv2dBackward, ModulatedDeformConv2dBackwardReference);

}  // namespace
}  // namespace polyop

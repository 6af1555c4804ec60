// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_backward_reference.h"
#include "ops/deform/onnx_deform_conv/onnx_deform_conv_backward.h"

namespace polyop {
namespace {

Status OnnxDeformConvBackwardReference(
    const OnnxDeformConvBackward& op, const Context&, Tensor<const double, 4> grad_output,
    Tensor<const double, 4> input, Tensor<const double, 4> weight, Tensor<const double, 4> offset,
    std::optional<Tensor<const double, 4>> mask, std::optional<Tensor<double, 4>> grad_input,
    std::optional<Tensor<double, 4>> grad_weight, std::optional<Tensor<double, 4>> grad_offset,
    std::optional<Tensor<double, 1>> grad_bias, std::optional<Tensor<double, 4>> grad_mask) {
  return reference::DeformConvBackward(
      op.Rule(), grad_output, input, offset, mask ? mask->data() : nullptr, weight,
      {grad_input ? grad_input->data() : nullptr, grad_offset ? grad_offset->data() : nullptr,
       grad_mask ? grad_mask->data() : nullptr, grad_weight ? grad_weight->data() : nullptr,
       grad_bias ? grad_bias->data() : nullptr});
}
POLYOP_REFERENCE_KERNEL(OnnxDeformConvBackward, OnnxDeformConvBackwardReference);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_backward_reference.h"
#include "ops/deform/openvino_deform_conv2d/openvino_deform_conv2d_backward.h"

namespace polyop {
namespace {

Status OpenvinoDeformConv2dBackwardReference(const OpenvinoDeformConv2dBackward& op, const Context&,
                                             Tensor<const double, 4> grad_output, Tensor<const double, 4> input,
                                             Tensor<const double, 4> offset, Tensor<const double, 4> weight,
                                             std::optional<Tensor<double, 4>> grad_input,
                                             std::optional<Tensor<double, 4>> grad_offset,
                                             std::optional<Tensor<double, 4>> grad_weight) {
  return reference::DeformConvBackward(
      op.Rule(), grad_output, input, offset, nullptr, weight,
      {grad_input ? grad_input->data() : nullptr, grad_offset ? grad_offset->data() : nullptr, nullptr,
       grad_weight ? grad_weight->data() : nullptr, nullptr});
}
POLYOP_REFERENCE_KERNEL(OpenvinoDeformConv2dBackward, OpenvinoDeformConv2dBackwardReference);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_reference.h"
#include "ops/deform/openvino_deform_conv2d/openvino_deform_conv2d.h"

namespace polyop {
namespace {

Status OpenvinoDeformConv2dReference(const OpenvinoDeformConv2d& op, const Context&, Tensor<const double, 4> input,
                                     Tensor<const double, 4> offset, Tensor<const double, 4> weight,
                                     Tensor<double, 4> output) {
  return reference::DeformConv(op.Rule(), input, offset, nullptr, weight, nullptr, output);
}
POLYOP_REFERENCE_KERNEL(OpenvinoDeformConv2d, OpenvinoDeformConv2dReference);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_reference.h"
#include "ops/deform/onnx_deform_conv/onnx_deform_conv.h"

namespace polyop {
namespace {

Status OnnxDeformConvReference(const OnnxDeformConv& op, const Context&, Tensor<const double, 4> input,
                               Tensor<const double, 4> weight, Tensor<const double, 4> offset,
                               std::optional<Tensor<const double, 1>> bias, std::optional<Tensor<const double, 4>> mask,
                               Tensor<double, 4> output) {
  return reference::DeformConv(op.Rule(), input, offset, mask ? mask->data() : nullptr, weight,
                               bias ? bias->data() : nullptr, output);
}
POLYOP_REFERENCE_KERNEL(OnnxDeformConv, OnnxDeformConvReference);

}  // namespace
}  // namespace polyop

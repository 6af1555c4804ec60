// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_reference.h"
#include "ops/deform/modulated_deform_conv2d/modulated_deform_conv2d.h"

namespace polyop {
namespace {

Status ModulatedDeformConv2dReference(const ModulatedDeformConv2d& op, const Context&, Tensor<const double, 4> input,
                                      Tensor<const double, 4> offset, Tensor<const double, 4> mask,
                                      Tensor<const double, 4> weight, std::optional<Tensor<const double, 1>> bias,
                                      Tensor<double, 4> output) {
  return reference::DeformConv(op, input, offset, mask.data(), weight, bias ? bias->data() : nullptr, output);
}
POLYOP_REFERENCE_KERNEL(ModulatedDeformConv2d, ModulatedDeformConv2dReference);

}  // namespace
}  // namespace polyop

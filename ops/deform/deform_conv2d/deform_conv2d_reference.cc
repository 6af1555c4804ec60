// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv2d/deform_conv2d.h"
#include "ops/deform/deform_conv_reference.h"

namespace polyop {
namespace {

Status DeformConv2dReference(const DeformConv2d& op, const Context&, Tensor<const double, 4> input,
                             Tensor<const double, 4> offset, Tensor<const double, 4> weight, Tensor<double, 4> output) {
  return reference::DeformConv(op, input, offset, nullptr, weight, nullptr, output);
}
POLYOP_REFERENCE_KERNEL(DeformConv2d, DeformConv2dReference);

}  // namespace
}  // namespace polyop

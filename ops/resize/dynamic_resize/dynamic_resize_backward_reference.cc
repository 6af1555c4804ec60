// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cubic_reference.h"
#include "ops/resize/dynamic_resize/dynamic_resize_backward.h"

namespace polyop {
namespace {

Status DynamicResizeBackwardReference(const DynamicResizeBackward&, const Context&, Tensor<const double, 4> grad_output,
                                      Tensor<const double, 4> input, Tensor<const float, 1> scales,
                                      Tensor<double, 4> grad_input) {
  const auto taps = [&](int axis) {
    return reference::CubicTapsOf(input.dim(axis), grad_output.dim(axis), -0.75, false,
                                  [&](double i) { return (i + 0.5) / scales[axis] - 0.5; });
  };
  reference::ResizeBackward(grad_output, taps(2), taps(3), grad_input);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DynamicResizeBackward, DynamicResizeBackwardReference);

}  // namespace
}  // namespace polyop

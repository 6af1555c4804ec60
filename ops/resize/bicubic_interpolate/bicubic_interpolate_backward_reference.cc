// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_interpolate/bicubic_interpolate_backward.h"
#include "ops/resize/cubic_reference.h"

namespace polyop {
namespace {

Status BicubicInterpolateBackwardReference(const BicubicInterpolateBackward& op, const Context&,
                                           Tensor<const double, 4> grad_output, Tensor<const double, 4> input,
                                           Tensor<double, 4> grad_input) {
  const auto taps = [&](int axis) {
    const int64_t inputs = input.dim(axis), outputs = grad_output.dim(axis);
    return reference::CubicTapsOf(inputs, outputs, -0.75, false, [&](double i) {
      if (!op.align_corners) return (i + 0.5) / op.scale_factor[static_cast<size_t>(axis - 2)] - 0.5;
      return outputs > 1 ? i * static_cast<double>(inputs - 1) / static_cast<double>(outputs - 1) : 0;
    });
  };
  reference::ResizeBackward(grad_output, taps(2), taps(3), grad_input);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BicubicInterpolateBackward, BicubicInterpolateBackwardReference);

}  // namespace
}  // namespace polyop

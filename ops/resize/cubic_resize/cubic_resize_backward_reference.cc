// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cubic_reference.h"
#include "ops/resize/cubic_resize/cubic_resize_backward.h"

namespace polyop {
namespace {

Status CubicResizeBackwardReference(const CubicResizeBackward& op, const Context&, Tensor<const double, 4> grad_output,
                                    Tensor<const double, 4> input, Tensor<const int64_t, 1>,
                                    Tensor<double, 4> grad_input) {
  using enum CubicResize::Transformation;
  const auto taps = [&](int axis) {
    const auto inputs = static_cast<double>(input.dim(axis)), outputs = static_cast<double>(grad_output.dim(axis));
    return reference::CubicTapsOf(input.dim(axis), grad_output.dim(axis), op.cubic_coeff_a, op.exclude_outside,
                                  [&](double i) {
                                    const bool one = outputs == 1;
                                    switch (op.coordinate_transformation_mode) {
                                      case kAlignCorners: return one ? 0 : i * (inputs - 1) / (outputs - 1);
                                      case kAsymmetric: return i * inputs / outputs;
                                      case kPytorchHalfPixel: return one ? 0 : (i + 0.5) * inputs / outputs - 0.5;
                                      case kHalfPixel: break;
                                    }
                                    return (i + 0.5) * inputs / outputs - 0.5;
                                  });
  };
  reference::ResizeBackward(grad_output, taps(2), taps(3), grad_input);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CubicResizeBackward, CubicResizeBackwardReference);

}  // namespace
}  // namespace polyop

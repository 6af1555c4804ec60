// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_interpolate/bicubic_interpolate.h"
#include "ops/resize/bicubic_resize.h"

namespace polyop {
namespace {

template <class T>
Status BicubicInterpolateCpu(const BicubicInterpolate& op, const Context& context, Tensor<const T, 4> input,
                             Tensor<T, 4> output) {
  return BicubicResize(context, input, AxisOf(op, input.shape(), output.shape(), 2),
                       AxisOf(op, input.shape(), output.shape(), 3), output);
}

POLYOP_PLAIN_CPU_KERNELS(BicubicInterpolate, BicubicInterpolateCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_resize.h"
#include "ops/resize/cubic_resize/cubic_resize.h"

namespace polyop {
namespace {

template <class T>
Status CubicResizeCpu(const CubicResize& op, const Context& context, Tensor<const T, 4> input, Tensor<const int64_t, 1>,
                      Tensor<T, 4> output) {
  return BicubicResize(context, input, op.Axis(input.dim(2), output.dim(2)), op.Axis(input.dim(3), output.dim(3)),
                       output);
}

POLYOP_PLAIN_CPU_KERNELS(CubicResize, CubicResizeCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_resize_backward.h"
#include "ops/resize/cubic_resize/cubic_resize_backward.h"

namespace polyop {
namespace {

template <class T>
Status CubicResizeBackwardCpu(const CubicResizeBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                              Tensor<const T, 4> input, Tensor<const int64_t, 1>, Tensor<T, 4> grad_input) {
  return BicubicResizeBackward(context, grad_output, op.Axis(input.dim(2), grad_output.dim(2)),
                               op.Axis(input.dim(3), grad_output.dim(3)), grad_input);
}

POLYOP_PLAIN_CPU_KERNELS(CubicResizeBackward, CubicResizeBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

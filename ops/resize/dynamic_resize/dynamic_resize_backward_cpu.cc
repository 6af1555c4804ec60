// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_resize_backward.h"
#include "ops/resize/dynamic_resize/dynamic_resize_backward.h"

namespace polyop {
namespace {

template <class T>
Status DynamicResizeBackwardCpu(const DynamicResizeBackward&, const Context& context, Tensor<const T, 4> grad_output,
                                Tensor<const T, 4> input, Tensor<const float, 1> scales, Tensor<T, 4> grad_input) {
  return BicubicResizeBackward(context, grad_output, ResizeAxis::ByScale(input.dim(2), grad_output.dim(2), scales[2]),
                               ResizeAxis::ByScale(input.dim(3), grad_output.dim(3), scales[3]), grad_input);
}

POLYOP_PLAIN_CPU_KERNELS(DynamicResizeBackward, DynamicResizeBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

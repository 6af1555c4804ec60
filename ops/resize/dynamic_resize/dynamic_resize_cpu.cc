// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_resize.h"
#include "ops/resize/dynamic_resize/dynamic_resize.h"

namespace polyop {
namespace {

template <class T>
Status DynamicResizeCpu(const DynamicResize&, const Context& context, Tensor<const T, 4> input,
                        Tensor<const float, 1> scales, Tensor<T, 4> output) {
  return BicubicResize(context, input, ResizeAxis::ByScale(input.dim(2), output.dim(2), scales[2]),
                       ResizeAxis::ByScale(input.dim(3), output.dim(3), scales[3]), output);
}

POLYOP_PLAIN_CPU_KERNELS(DynamicResize, DynamicResizeCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

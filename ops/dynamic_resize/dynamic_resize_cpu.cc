#include "families/resize/bicubic_resize.h"
#include "ops/dynamic_resize/dynamic_resize.h"

namespace polyop {
namespace {

template <class T>
Status DynamicResizeCpu(const DynamicResize&, const Context& context, Tensor<const T, 4> input,
                        Tensor<const float, 1> scales, Tensor<T, 4> output) {
  return BicubicResize(context, input, ResizeAxis::ByScale(input.dim(2), output.dim(2), scales[2]),
                       ResizeAxis::ByScale(input.dim(3), output.dim(3), scales[3]), output);
}

POLYOP_PLAIN_CPU_KERNEL(DynamicResize, DynamicResizeF32, DynamicResizeCpu<float>);
POLYOP_PLAIN_CPU_KERNEL(DynamicResize, DynamicResizeF16, DynamicResizeCpu<Half>);
POLYOP_PLAIN_CPU_KERNEL(DynamicResize, DynamicResizeBF16, DynamicResizeCpu<BFloat16>);

}  // namespace
}  // namespace polyop

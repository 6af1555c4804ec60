#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/dynamic_resize/dynamic_resize_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/resize/bicubic_resize-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/dynamic_resize/dynamic_resize.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status DynamicResizeCpu(const DynamicResize&, const Context& context, Tensor<const T, 4> input,
                        Tensor<const float, 1> scales, Tensor<T, 4> output) {
  return BicubicResize(context, input, ResizeAxis::ByScale(input.dim(2), output.dim(2), scales[2]),
                       ResizeAxis::ByScale(input.dim(3), output.dim(3), scales[3]), output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(DynamicResize, DynamicResizeF32, DynamicResizeCpu<float>);
POLYOP_CPU_KERNEL(DynamicResize, DynamicResizeF16, DynamicResizeCpu<Half>);
POLYOP_CPU_KERNEL(DynamicResize, DynamicResizeBF16, DynamicResizeCpu<BFloat16>);
}  // namespace polyop
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/bicubic_interpolate/bicubic_interpolate_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/resize/bicubic_resize-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/bicubic_interpolate/bicubic_interpolate.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status BicubicInterpolateCpu(const BicubicInterpolate& op, const Context& context, Tensor<const T, 4> input,
                             Tensor<T, 4> output) {
  return BicubicResize(context, input, AxisOf(op, input.shape(), output.shape(), 2),
                       AxisOf(op, input.shape(), output.shape(), 3), output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(BicubicInterpolate, BicubicInterpolateF32, BicubicInterpolateCpu<float>);
POLYOP_CPU_KERNEL(BicubicInterpolate, BicubicInterpolateF16, BicubicInterpolateCpu<Half>);
POLYOP_CPU_KERNEL(BicubicInterpolate, BicubicInterpolateBF16, BicubicInterpolateCpu<BFloat16>);
}  // namespace polyop
#endif

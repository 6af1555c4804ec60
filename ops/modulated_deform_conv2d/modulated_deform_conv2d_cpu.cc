#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/modulated_deform_conv2d/modulated_deform_conv2d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/deform_conv/deform_conv-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/modulated_deform_conv2d/modulated_deform_conv2d.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status ModulatedDeformConv2dCpu(const ModulatedDeformConv2d& op, const Context& context, Tensor<const T, 4> input,
                                Tensor<const T, 4> offset, Tensor<const T, 4> mask, Tensor<const T, 4> weight,
                                std::optional<Tensor<const T, 1>> bias, Tensor<T, 4> output) {
  const auto sizes = DeformConvSizes::Of(op, input, weight, output);
  return DeformConv<T>(context, sizes, input.data(), offset.data(), mask.data(), weight.data(),
                       bias ? bias->data() : nullptr, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(ModulatedDeformConv2d, ModulatedDeformConv2dF32, ModulatedDeformConv2dCpu<float>);
POLYOP_CPU_KERNEL(ModulatedDeformConv2d, ModulatedDeformConv2dF16, ModulatedDeformConv2dCpu<Half>);
POLYOP_CPU_KERNEL(ModulatedDeformConv2d, ModulatedDeformConv2dBF16, ModulatedDeformConv2dCpu<BFloat16>);
}  // namespace polyop
#endif

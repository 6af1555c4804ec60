#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform_conv2d/deform_conv2d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/deform_conv/deform_conv-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/deform_conv2d/deform_conv2d.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status DeformConv2dCpu(const DeformConv2d& op, const Context& context, Tensor<const T, 4> input,
                       Tensor<const T, 4> offset, Tensor<const T, 4> weight, Tensor<T, 4> output) {
  const auto sizes = DeformConvSizes::Of(op, input, weight, output);
  return DeformConv<T>(context, sizes, input.data(), offset.data(), nullptr, weight.data(), nullptr, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(DeformConv2d, DeformConv2dF32, DeformConv2dCpu<float>);
POLYOP_CPU_KERNEL(DeformConv2d, DeformConv2dF16, DeformConv2dCpu<Half>);
POLYOP_CPU_KERNEL(DeformConv2d, DeformConv2dBF16, DeformConv2dCpu<BFloat16>);
}  // namespace polyop
#endif

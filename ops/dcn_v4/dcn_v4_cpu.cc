#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/dcn_v4/dcn_v4_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/deform_conv/window-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/dcn_v4/dcn_v4.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status DcnV4Cpu(const DcnV4& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 4> offset_mask,
                Tensor<T, 4> output) {
  const auto data = WindowData<T>::Together(op, offset_mask.data(), offset_mask.dim(3));
  return SumDeformWindows<T>(op, context, input, data, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(DcnV4, DcnV4F32, DcnV4Cpu<float>);
POLYOP_CPU_KERNEL(DcnV4, DcnV4F16, DcnV4Cpu<Half>);
POLYOP_CPU_KERNEL(DcnV4, DcnV4BF16, DcnV4Cpu<BFloat16>);
}  // namespace polyop
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/dcn_v3/dcn_v3_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/deform_conv/window-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/dcn_v3/dcn_v3.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status DcnV3Cpu(const DcnV3& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 4> offset,
                Tensor<const T, 4> mask, Tensor<T, 4> output) {
  return SumDeformWindows<T>(op, context, input, WindowData<T>::Apart(op, offset.data(), mask.data()), output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(DcnV3, DcnV3F32, DcnV3Cpu<float>);
POLYOP_CPU_KERNEL(DcnV3, DcnV3F16, DcnV3Cpu<Half>);
POLYOP_CPU_KERNEL(DcnV3, DcnV3BF16, DcnV3Cpu<BFloat16>);
}  // namespace polyop
#endif

// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/dcn_v3/dcn_v3_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/deform/dcn_v3/dcn_v3.h"
#include "ops/deform/dcn_window-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status DcnV3Cpu(const DcnV3& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 4> offset,
                Tensor<const T, 4> mask, Tensor<T, 4> output) {
  return SumDcnWindows<T>(op, context, input, DcnWindowData<T>::Separate(op, offset.data(), mask.data()), output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(DcnV3, DcnV3Cpu, float, Half, BFloat16);
}  // namespace polyop
#endif

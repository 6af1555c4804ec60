// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/dcn_v4/dcn_v4_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/deform/dcn_v4/dcn_v4.h"
#include "ops/deform/dcn_window-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status DcnV4Cpu(const DcnV4& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 4> offset_mask,
                Tensor<T, 4> output) {
  const auto data = DcnWindowData<T>::Packed(op, offset_mask.data(), offset_mask.dim(3));
  return SumDcnWindows<T>(op, context, input, data, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(DcnV4, DcnV4Cpu, float, Half, BFloat16);
}  // namespace polyop
#endif

// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/dcn_v3/dcn_v3_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/deform/dcn_v3/dcn_v3_backward.h"
#include "ops/deform/dcn_window_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status DcnV3BackwardCpu(const DcnV3Backward& op, const Context& context, Tensor<const T, 4> grad_output,
                        Tensor<const T, 4> input, Tensor<const T, 4> offset, Tensor<const T, 4> mask,
                        std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_offset,
                        std::optional<Tensor<T, 4>> grad_mask) {
  return SumDcnWindowsBackward<T>(op, context, grad_output, input,
                                  DcnWindowData<T>::Separate(op, offset.data(), mask.data()),
                                  grad_input ? grad_input->data() : nullptr,
                                  grad_offset ? grad_offset->data() : nullptr, grad_mask ? grad_mask->data() : nullptr);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(DcnV3Backward, DcnV3BackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif

// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/dcn_v4/dcn_v4_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/deform/dcn_v4/dcn_v4_backward.h"
#include "ops/deform/dcn_window_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status DcnV4BackwardCpu(const DcnV4Backward& op, const Context& context, Tensor<const T, 4> grad_output,
                        Tensor<const T, 4> input, Tensor<const T, 4> offset_mask,
                        std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_offset_mask) {
  const int64_t row = offset_mask.dim(3), used = 3 * op.group * op.points();
  const auto data = DcnWindowData<T>::Packed(op, offset_mask.data(), row);
  T* const to = grad_offset_mask ? grad_offset_mask->data() : nullptr;
  for (int64_t i = 0; to != nullptr && i < offset_mask.size(); i += row) {
    std::fill_n(to + i + used, row - used, FromFloat<T>(0));
  }
  return SumDcnWindowsBackward<T>(op, context, grad_output, input, data, grad_input ? grad_input->data() : nullptr, to,
                                  to != nullptr ? to + 2 * op.points() : nullptr);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(DcnV4Backward, DcnV4BackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif

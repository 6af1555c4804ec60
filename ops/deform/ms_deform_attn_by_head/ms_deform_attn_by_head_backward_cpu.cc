// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/ms_deform_attn_by_head/ms_deform_attn_by_head_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/deform/deform_attn_backward-inl.h"
#include "ops/deform/ms_deform_attn_by_head/ms_deform_attn_by_head_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Pair, class T = typename Pair::Real, class I = typename Pair::Int>
Status MsDeformAttnByHeadBackwardCpu(const MsDeformAttnByHeadBackward&, const Context& context,
                                     Tensor<const T, 4> grad_output, Tensor<const T, 4> value,
                                     Tensor<const I, 2> shapes, Tensor<const I, 1> starts, Tensor<const T, 6> locations,
                                     Tensor<const T, 5> weights, std::optional<Tensor<T, 4>> grad_value,
                                     std::optional<Tensor<T, 6>> grad_locations,
                                     std::optional<Tensor<T, 5>> grad_weights) {
  return DeformAttnAtLocationsBackward<T>(context, grad_output.data(), value, shapes, starts, locations, weights.data(),
                                          grad_value ? grad_value->data() : nullptr,
                                          grad_locations ? grad_locations->data() : nullptr,
                                          grad_weights ? grad_weights->data() : nullptr);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MsDeformAttnByHeadBackward, MsDeformAttnByHeadBackwardCpu, F32I64, F32I32, F16I64, F16I32, BF16I64,
                   BF16I32);
}  // namespace polyop
#endif

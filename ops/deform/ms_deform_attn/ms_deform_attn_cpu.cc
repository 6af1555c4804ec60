// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/ms_deform_attn/ms_deform_attn_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/deform/deform_attn-inl.h"
#include "ops/deform/ms_deform_attn/ms_deform_attn.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Pair, class T = typename Pair::Real, class I = typename Pair::Int>
Status MsDeformAttnCpu(const MsDeformAttn&, const Context& context, Tensor<const T, 4> value, Tensor<const I, 2> shapes,
                       Tensor<const I, 1> starts, Tensor<const T, 6> locations, Tensor<const T, 5> weights,
                       Tensor<T, 3> output) {
  return DeformAttnAtLocations(context, value, shapes, starts, locations, weights.data(), output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MsDeformAttn, MsDeformAttnCpu, F32I64, F32I32, F16I64, F16I32, BF16I64, BF16I32);
}  // namespace polyop
#endif

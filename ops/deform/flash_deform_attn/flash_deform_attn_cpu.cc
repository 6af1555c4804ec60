// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/flash_deform_attn/flash_deform_attn_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/type_pairs.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/deform/deform_attn-inl.h"
#include "ops/deform/flash_deform_attn/flash_deform_attn.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Pair, class T = typename Pair::Real, class I = typename Pair::Int>
Status FlashDeformAttnCpu(const FlashDeformAttn& op, const Context& context, Tensor<const T, 4> value,
                          Tensor<const I, 2> shapes, Tensor<const I, 1> starts, Tensor<const T, 4> loc_attn,
                          Tensor<T, 3> output) {
  const SampleLevels levels(context, starts.dim(0), op.points);
  POLYOP_RETURN_IF_ERROR(levels.Read(value.dim(1), shapes, starts));
  const int64_t samples = levels.samples(), heads = value.dim(2), pairs = value.dim(0) * loc_attn.dim(1) * heads;
  const auto locate = [&](int64_t pair, const AttnPositions& positions) HWY_ATTR {
    PrefetchLaterQuery(loc_attn.data(), pair, pairs, heads, samples * 3);
    const T* const locations = loc_attn.data() + pair * samples * 3;
    SetPositions(levels, locations, positions);
    WidenRow(locations + 2 * samples, samples, positions.weight);
    Softmax(positions.weight, samples);
  };
  return DeformAttn<T>(context, value, levels, loc_attn.dim(1), locate, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(FlashDeformAttn, FlashDeformAttnCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif

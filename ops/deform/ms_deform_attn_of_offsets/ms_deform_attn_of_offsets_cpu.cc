// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/deform/deform_attn-inl.h"
#include "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets.h"
#include "ops/deform/offset_positions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Pair, class T = typename Pair::Real, class I = typename Pair::Int>
Status MsDeformAttnOfOffsetsCpu(const MsDeformAttnOfOffsets&, const Context& context, Tensor<const T, 4> value,
                                Tensor<const I, 2> shapes, Tensor<const T, 4> references, Tensor<const T, 4> offsets,
                                Tensor<const T, 4> logits, Tensor<T, 4> output) {
  const int64_t heads = value.dim(2), groups = references.dim(3) / 2;
  const int64_t points = logits.dim(3) / std::max<int64_t>(shapes.dim(0), 1);
  const SampleLevels levels(context, shapes.dim(0), points);
  POLYOP_RETURN_IF_ERROR(levels.Read(value.dim(1), shapes));
  const int64_t samples = levels.samples(), pairs = value.dim(0) * references.dim(1) * heads;
  const Scratch<int32_t> group = context.Allocate<int32_t>(samples);
  if (!group) return Internal("out of memory: ", samples, " samples");
  for (int64_t s = 0; s < samples; ++s) group[s] = static_cast<int32_t>(s % points % groups);
  const auto locate = [&](int64_t pair, const AttnPositions& positions) HWY_ATTR {
    PrefetchLaterQuery(offsets.data(), pair, pairs, heads, samples * 2);
    PrefetchLaterQuery(logits.data(), pair, pairs, heads, samples);
    SetPositionsByOffsets(levels, group.data(), references.data() + pair / heads * groups * 2,
                          offsets.data() + pair * samples * 2, logits.data() + pair * samples, positions);
  };
  return DeformAttn<T>(context, value, levels, references.dim(1), locate, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif

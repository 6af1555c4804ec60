#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/deform_attn/deform_attn-inl.h"
#include "families/points/type_pairs.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets.h"

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
  const int64_t samples = levels.samples();
  const Scratch<int32_t> group = context.Allocate<int32_t>(samples);
  if (!group) return Internal("out of memory: ", samples, " samples");
  for (int64_t s = 0; s < samples; ++s) group[s] = static_cast<int32_t>(s % points % groups);
  const auto place = [&](int64_t pair, const AttnPlaces& places) HWY_ATTR {
    WidenRow(logits.data() + pair * samples, samples, places.weight);
    Softmax(places.weight, samples);
    const T* const reference = references.data() + pair / heads * groups * 2;
    for (int64_t s = 0; s < samples; ++s) {
      places.x[s] = ToFloat(reference[2 * group[s]]);
      places.y[s] = ToFloat(reference[2 * group[s] + 1]);
    }
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto half = hn::Set(d, 0.5f);
    // In pixels, and from there by the offsets.
    const auto move = [&](float* at, const int32_t* extent, auto offset) HWY_ATTR {
      const auto size = hn::ConvertTo(d, hn::LoadU(di, extent));
      hn::StoreU(hn::Sub(hn::MulAdd(hn::LoadU(d, at), size, offset), half), d, at);
    };
    ForEachPair(offsets.data() + pair * samples * 2, samples, [&](int64_t i, auto x, auto y) HWY_ATTR {
      move(places.x + i, levels.widths() + i, x);
      move(places.y + i, levels.heights() + i, y);
    });
  };
  return DeformAttn<T>(context, value, levels, references.dim(1), place, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsF32I32, MsDeformAttnOfOffsetsCpu<F32I32>);
POLYOP_CPU_KERNEL(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsF32I64, MsDeformAttnOfOffsetsCpu<F32I64>);
POLYOP_CPU_KERNEL(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsF16I32, MsDeformAttnOfOffsetsCpu<F16I32>);
POLYOP_CPU_KERNEL(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsF16I64, MsDeformAttnOfOffsetsCpu<F16I64>);
POLYOP_CPU_KERNEL(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsBF16I32, MsDeformAttnOfOffsetsCpu<BF16I32>);
POLYOP_CPU_KERNEL(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsBF16I64, MsDeformAttnOfOffsetsCpu<BF16I64>);
}  // namespace polyop
#endif

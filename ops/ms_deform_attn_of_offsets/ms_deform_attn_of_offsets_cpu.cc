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
  const int64_t heads = value.dim(2), samples = logits.dim(3), groups = references.dim(3) / 2;
  const int64_t points = samples / std::max<int64_t>(shapes.dim(0), 1);
  const Scratch<AttnLevel> levels = context.Allocate<AttnLevel>(shapes.dim(0));
  if (!levels) return Internal("out of memory: ", shapes.dim(0), " levels");
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, value.dim(1), levels.data()));
  const auto find = [&](int64_t pair, float* weights, AttnTaps<T>& taps) HWY_ATTR {
    WidenRow(logits.data() + pair * samples, samples, weights);
    Softmax(weights, samples);
    const T* const offset = offsets.data() + pair * samples * 2;
    const T* const reference = references.data() + pair / heads * groups * 2;
    for (int64_t s = 0; s < samples; ++s) {
      const AttnLevel& level = levels[s / points];
      const T* const at = reference + s % points % groups * 2;
      const float x = ToFloat(at[0]) * static_cast<float>(level.width) + ToFloat(offset[2 * s]) - 0.5f;
      const float y = ToFloat(at[1]) * static_cast<float>(level.height) + ToFloat(offset[2 * s + 1]) - 0.5f;
      taps.Add(level, y, x, weights[s]);
    }
  };
  return DeformAttn<T>(context, value, references.dim(1), samples, find, output.data());
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

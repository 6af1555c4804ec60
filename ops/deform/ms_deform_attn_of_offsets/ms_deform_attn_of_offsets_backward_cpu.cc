// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/deform/deform_attn_backward-inl.h"
#include "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets_backward.h"
#include "ops/deform/offset_positions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Gradients that are not requested are null.
template <class T>
struct OffsetGrads {
  T *value, *references, *offsets, *logits;
};

template <class T>
Status ByOffsetsBackward(const Context& context, const T* grad_output, const Tensor<const T, 4>& value,
                         const SampleLevels& levels, int64_t points, const Tensor<const T, 4>& references,
                         const T* offsets, const T* logits, const OffsetGrads<T>& to) {
  const int64_t heads = value.dim(2), groups = references.dim(3) / 2, samples = levels.samples();
  const int64_t queries = references.dim(1), pairs = value.dim(0) * queries;
  const Scratch<int32_t> group = context.Allocate<int32_t>(samples);
  // Heads share reference points, so each has sums of its gradients.
  const Scratch<float> of_heads = context.Allocate<float>(to.references != nullptr ? pairs * heads * groups * 2 : 0);
  if (!group || !of_heads) return Internal("out of memory: ", samples, " samples");
  for (int64_t s = 0; s < samples; ++s) group[s] = static_cast<int32_t>(s % points % groups);
  const auto locate = [&](int64_t pair, const AttnPositions& positions) HWY_ATTR {
    PrefetchLaterQuery(offsets, pair, pairs * heads, heads, samples * 2);
    PrefetchLaterQuery(logits, pair, pairs * heads, heads, samples);
    SetPositionsByOffsets(levels, group.data(), references.data() + pair / heads * groups * 2,
                          offsets + pair * samples * 2, logits + pair * samples, positions);
  };
  const auto finish = [&](int64_t pair, const AttnPositions& positions, const AttnPositions& grads) HWY_ATTR {
    if (to.offsets != nullptr) StorePositionGrads<false>(levels, grads, to.offsets + pair * samples * 2);
    if (to.references != nullptr) {
      float* const sums = of_heads.data() + pair * groups * 2;
      std::fill_n(sums, groups * 2, 0.0f);
      for (int64_t s = 0; s < samples; ++s) {
        sums[2 * group[s]] += grads.x[s] * static_cast<float>(levels.widths()[s]);
        sums[2 * group[s] + 1] += grads.y[s] * static_cast<float>(levels.heights()[s]);
      }
    }
    if (to.logits != nullptr) {
      SoftmaxBackward(positions.weight, samples, grads.weight);
      NarrowRow(grads.weight, samples, to.logits + pair * samples);
    }
  };
  const bool of_samples = to.references != nullptr || to.offsets != nullptr || to.logits != nullptr;
  POLYOP_RETURN_IF_ERROR(
      DeformAttnBackward(context, grad_output, value, levels, queries, to.value, of_samples, locate, finish));
  if (to.references == nullptr) return Status::Ok();
  context.ParallelFor(pairs, GrainFor(static_cast<double>(heads * groups * 2)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * groups * 2; i < end * groups * 2; ++i) {
      const float* const of_query = of_heads.data() + i / (groups * 2) * heads * groups * 2 + i % (groups * 2);
      float sum = 0;
      for (int64_t m = 0; m < heads; ++m) sum += of_query[m * groups * 2];
      to.references[i] = FromFloat<T>(sum);
    }
  });
  return Status::Ok();
}

template <class Pair, class T = typename Pair::Real, class I = typename Pair::Int>
Status MsDeformAttnOfOffsetsBackwardCpu(
    const MsDeformAttnOfOffsetsBackward&, const Context& context, Tensor<const T, 4> grad_output,
    Tensor<const T, 4> value, Tensor<const I, 2> shapes, Tensor<const T, 4> references, Tensor<const T, 4> offsets,
    Tensor<const T, 4> logits, std::optional<Tensor<T, 4>> grad_value, std::optional<Tensor<T, 4>> grad_references,
    std::optional<Tensor<T, 4>> grad_offsets, std::optional<Tensor<T, 4>> grad_logits) {
  const int64_t points = logits.dim(3) / std::max<int64_t>(shapes.dim(0), 1);
  const SampleLevels levels(context, shapes.dim(0), points);
  POLYOP_RETURN_IF_ERROR(levels.Read(value.dim(1), shapes));
  const OffsetGrads<T> to{grad_value ? grad_value->data() : nullptr,
                          grad_references ? grad_references->data() : nullptr,
                          grad_offsets ? grad_offsets->data() : nullptr, grad_logits ? grad_logits->data() : nullptr};
  return ByOffsetsBackward<T>(context, grad_output.data(), value, levels, points, references, offsets.data(),
                              logits.data(), to);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MsDeformAttnOfOffsetsBackward, MsDeformAttnOfOffsetsBackwardCpu, F32I32, F32I64, F16I32, F16I64,
                   BF16I32, BF16I64);
}  // namespace polyop
#endif

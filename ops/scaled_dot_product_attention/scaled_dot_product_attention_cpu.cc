#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scaled_dot_product_attention/scaled_dot_product_attention_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/simd.h"
#include "ops/scaled_dot_product_attention/scaled_dot_product_attention.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE float Dot(const T* a, const T* b, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) sum = hn::MulAdd(LoadFloat(d, a + i), LoadFloat(d, b + i), sum);
  if (i < count) {
    const size_t rest = static_cast<size_t>(count - i);
    sum = hn::MulAdd(LoadFloatN(d, a + i, rest), LoadFloatN(d, b + i, rest), sum);
  }
  return hn::ReduceSum(d, sum);
}

// to[0, count) += factor * from[0, count)
template <class T>
HWY_INLINE void AddScaled(const T* from, float factor, int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::MulAdd(LoadFloat(d, from + i), f, hn::LoadU(d, to + i)), d, to + i);
  for (; i < count; ++i) to[i] += factor * ToFloat(from[i]);
}

// In place. A row of -infinity alone gives NaN, as torch's softmax does.
void Softmax(float* row, int64_t count) {
  float largest = -std::numeric_limits<float>::infinity(), total = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::fmax(largest, row[i]);
  for (int64_t i = 0; i < count; ++i) total += row[i] = std::exp(row[i] - largest);
  for (int64_t i = 0; i < count; ++i) row[i] /= total;
}

template <class T>
Status ScaledDotProductAttentionCpu(const ScaledDotProductAttention&, const Context& context, Tensor<const T, 3> q, Tensor<const T, 3> k,
                                    Tensor<const T, 3> v, std::optional<Tensor<const T, kAnyRank>> mask, Tensor<T, 3> out,
                                    Tensor<T, 3> weights) {
  const int64_t queries = q.dim(1), depth = q.dim(2), keys = k.dim(1), width = v.dim(2), rows = q.dim(0) * queries;
  if (mask && mask->shape() != weights.shape() && mask->shape() != Shape{queries, keys}) {
    return InvalidArgument("'mask' has shape ", ToString(mask->shape()), ", wanted ", ToString(weights.shape()), " or ",
                           ToString(Shape{queries, keys}));
  }
  const int64_t grain = GrainFor(0.15 * static_cast<double>(keys * (depth + width)) + 10 * static_cast<double>(keys));
  const int64_t scratch = keys + width;
  const Scratch<float> memory = context.Allocate<float>(Context::NumTasks(rows, grain) * scratch);
  if (!memory) return Internal("out of memory: scratch for ", keys, " keys");
  const float scale = depth > 0 ? 1.0f / std::sqrt(static_cast<float>(depth)) : 0.0f;
  context.ParallelFor(rows, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* const logits = memory.data() + task * scratch;
    float* const sums = logits + keys;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first_key = row / queries * keys;
      const T* added = mask ? mask->data() + (mask->rank() == 3 ? row : row % queries) * keys : nullptr;
      for (int64_t s = 0; s < keys; ++s) {
        logits[s] = Dot(q.data() + row * depth, k.data() + (first_key + s) * depth, depth) * scale;
        if (added) logits[s] += ToFloat(added[s]);
      }
      Softmax(logits, keys);
      std::fill_n(sums, width, 0.0f);
      for (int64_t s = 0; s < keys; ++s) {
        weights[row * keys + s] = FromFloat<T>(logits[s]);
        AddScaled(v.data() + (first_key + s) * width, logits[s], width, sums);
      }
      for (int64_t c = 0; c < width; ++c) out[row * width + c] = FromFloat<T>(sums[c]);
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(ScaledDotProductAttention, ScaledDotProductAttentionF32, ScaledDotProductAttentionCpu<float>);
POLYOP_CPU_KERNEL(ScaledDotProductAttention, ScaledDotProductAttentionF16, ScaledDotProductAttentionCpu<Half>);
POLYOP_CPU_KERNEL(ScaledDotProductAttention, ScaledDotProductAttentionBF16, ScaledDotProductAttentionCpu<BFloat16>);
}  // namespace polyop
#endif

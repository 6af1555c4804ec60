// SPDX-License-Identifier: Apache-2.0
// Attention on the CPU: softmax(q k^T / sqrt(E) + mask) v. Compiled once per instruction set; include it from a kernel
// file.
#if defined(POLYOP_OPS_ATTENTION_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_ATTENTION_ATTENTION_INL_H_
#undef POLYOP_OPS_ATTENTION_ATTENTION_INL_H_
#else
#define POLYOP_OPS_ATTENTION_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/stream-inl.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kPackedFloats = int64_t{8}
                                  << 20;  // limits how many batch entries have their keys and values packed at a time

// y[i] = x[i] * factor
template <class T>
void NarrowRow(const float* x, float factor, int64_t count, T* y) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) StoreFloat(hn::Mul(hn::LoadU(d, x + i), f), d, y + i);
  if (i == count) return;
  const size_t rest = static_cast<size_t>(count - i);
  StoreFloatN(hn::Mul(LoadFloatN(d, x + i, rest), f), d, y + i, rest);
}

// row[i] += mask[i * step]. Requires: step is 0 or 1.
template <class T>
void AddMask(const T* mask, int64_t step, int64_t count, float* row) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (step == 1) {
    for (; i + lanes <= count; i += lanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, row + i), LoadFloat(d, mask + i)), d, row + i);
    }
  }
  for (; i < count; ++i) row[i] += ToFloat(mask[i * step]);
}

// softmax(q k^T / sqrt(E) + mask) v. The mask's strides are 0 in broadcast dimensions.
template <class T>
struct Attention {
  Tensor<const T, 3> q, k, v;
  const T* mask = nullptr;
  int64_t mask_batch = 0, mask_row = 0, mask_column = 0;
  Tensor<T, 3> out;
  T* weights = nullptr;  // [B, L, S], or null if not requested

  int64_t queries() const { return q.dim(1); }
  int64_t size() const { return q.dim(2); }
  int64_t keys() const { return k.dim(1); }
  int64_t values() const { return v.dim(2); }
  // Layout of the packed keys (outputs of the first product) and values (outputs of the second).
  GemmColumns key_columns() const { return GemmColumns(keys()); }
  GemmColumns value_columns() const { return GemmColumns(values()); }
  int64_t KeyFloats() const { return key_columns().stride() * size(); }
  int64_t ValueFloats() const { return value_columns().stride() * keys(); }
  int64_t panels() const { return key_columns().panels() + value_columns().panels(); }

  // Packs panel `panel` of a batch entry. The values' panels come after the keys'.
  void Pack(int64_t batch, int64_t panel, float* packed) const {
    const GemmColumns of_keys = key_columns(), of_values = value_columns();
    if (panel < of_keys.panels()) {
      const int64_t depth = size();
      const T* const from = k.data() + batch * keys() * depth;
      const auto fill = [&](int64_t o, float* to, int64_t stride) {
        for (int64_t e = 0; e < depth; ++e) to[e * stride] = ToFloat(from[o * depth + e]);
      };
      PackPanel(of_keys, panel, depth, fill, packed + panel * of_keys.panel() * depth);
    } else {
      const int64_t width = of_values.panel(), first = (panel - of_keys.panels()) * width;
      const int64_t some = std::min(width, values() - first);
      const T* const from = v.data() + batch * keys() * values() + first;
      float* const to = packed + KeyFloats() + first * keys();
      for (int64_t s = 0; s < keys(); ++s) {
        WidenRow(from + s * values(), some, to + s * width);
        std::fill_n(to + s * width + some, width - some, 0.0f);
      }
    }
  }

  bool streams() const {
    return std::is_same_v<T, float> && weights != nullptr &&
           ShouldStream(keys() * static_cast<int64_t>(sizeof(T)), q.dim(0) * queries());
  }
  void WriteWeights(const float* terms, float factor, T* to) const {
    if constexpr (std::is_same_v<T, float>) {
      if (streams()) return StreamScaled(terms, factor, keys(), to);
    }
    NarrowRow(terms, factor, keys(), to);
  }

  // Attends with queries [first, first + count) of a batch entry. Requires: rows >= count is a multiple of kGemmRows.
  void Attend(int64_t batch, int64_t first, int64_t count, int64_t rows, const float* packed, const int32_t* k_offsets,
              float* scratch) const {
    const GemmColumns of_keys = key_columns(), of_values = value_columns();
    float* query = scratch;
    float* scores = query + rows * size();
    float* sums = scores + rows * of_keys.stride();
    float* factors = sums + rows * of_values.stride();  // normalisation, applied to the sums instead of to each term
    const int64_t row = batch * queries() + first;
    // If E is 0, all products are 0 and the factor does not matter.
    const float factor = size() == 0 ? 1.0f : static_cast<float>(1.0 / std::sqrt(static_cast<double>(size())));
    for (int64_t r = 0; r < count; ++r) WidenRow(q.data() + (row + r) * size(), size(), query + r * size(), factor);
    std::fill(query + count * size(), query + rows * size(), 0.0f);
    GemmTile(query, rows, size(), k_offsets, size(), packed, of_keys, scores, of_keys.stride());
    for (int64_t r = 0; r < count; ++r) {
      float* score = scores + r * of_keys.stride();
      if (mask != nullptr) {
        AddMask(mask + batch * mask_batch + (first + r) * mask_row, mask_column, keys(), score);
      }
      factors[r] = SoftmaxTerms(score, keys());
      if (weights != nullptr) WriteWeights(score, factors[r], weights + (row + r) * keys());
    }
    GemmTile(scores, rows, of_keys.stride(), k_offsets, keys(), packed + KeyFloats(), of_values, sums,
             of_values.stride());
    for (int64_t r = 0; r < count; ++r) {
      NarrowRow(sums + r * of_values.stride(), factors[r], values(), out.data() + (row + r) * values());
    }
  }
};

/// Computes the output.
template <class T>
Status Attend(const Context& context, const Attention<T>& attention) {
  const int64_t batches = attention.q.dim(0), queries = attention.queries(), keys = attention.keys();
  if (batches == 0 || queries == 0) return Status::Ok();

  // Enough rows to reuse a panel of packed keys in the L1 cache, but few enough that their scores stay in the L2 cache.
  const int64_t max_rows = std::clamp<int64_t>(65536 / std::max<int64_t>(keys, 1) / kGemmRows, 1, 4) * kGemmRows;
  const int64_t rows = std::min(max_rows, (queries + kGemmRows - 1) / kGemmRows * kGemmRows);
  const int64_t blocks = (queries + rows - 1) / rows;
  const int64_t entry = attention.KeyFloats() + attention.ValueFloats();
  const int64_t at_once = std::clamp<int64_t>(kPackedFloats / std::max<int64_t>(entry, 1), 1, batches);
  const double flops = static_cast<double>(rows) * static_cast<double>(keys) *
                       static_cast<double>(attention.size() + attention.values() + 10);
  const int64_t grain = GrainFor(flops * 0.05);
  const int64_t scratch_size =
      rows * (attention.size() + attention.key_columns().stride() + attention.value_columns().stride() + 1);
  const Scratch<float> packed = context.Allocate<float>(at_once * entry);
  const Scratch<int32_t> k_offsets = context.Allocate<int32_t>(std::max(attention.size(), keys));
  if (!packed || !k_offsets) return Internal("out of memory: ", at_once * entry, " packed keys and values");
  std::iota(k_offsets.data(), k_offsets.data() + k_offsets.size(), 0);

  const int64_t panels = attention.panels();
  const int64_t pack_grain = GrainFor(static_cast<double>(entry) / static_cast<double>(std::max<int64_t>(panels, 1)));
  for (int64_t first = 0; first < batches; first += at_once) {
    const int64_t count = std::min(at_once, batches - first);
    context.ParallelFor(count * panels, pack_grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i)
        attention.Pack(first + i / panels, i % panels, packed.data() + i / panels * entry);
    });
    const auto attend = [&](float* scratch, int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i % blocks * rows;
        attention.Attend(first + i / blocks, at, std::min(rows, queries - at), rows, packed.data() + i / blocks * entry,
                         k_offsets.data(), scratch);
      }
      if (attention.streams()) hwy::FlushStream();
    };
    if (!context.ParallelForWithScratch<float>(count * blocks, grain, scratch_size, attend)) {
      return Internal("out of memory: scores of ", rows, " queries and ", keys, " keys");
    }
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scatter/embedding_bag/embedding_bag_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/prefetch.h"
#include "kernels/cpu/simd.h"
#include "ops/scatter/embedding_bag/embedding_bag.h"
#include "ops/scatter/embedding_bag/embedding_bag_bags.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using FloatTag = hn::ScalableTag<float>;

constexpr int64_t kAhead = 20;  // rows of a table are far apart, so the processor does not fetch them on its own

template <class T, class I>
struct Table {
  const T* rows;
  const I* indices;
  const T* weights;  // of the indices; null: 1
  int64_t channels, count, padding;

  bool IsPadding(int64_t i) const { return indices[i] == padding; }
  /// Returns the row of an index, `from` the first row or one of its channels.
  const T* Row(const T* from, int64_t i) const { return from + int64_t{indices[i]} * channels; }
  /// Prefetches `width` channels of the row of a later index.
  HWY_INLINE void PrefetchLater(const T* from, int64_t i, int64_t width) const {
    if (i + kAhead < count) PrefetchRow(Row(from, i + kAhead), width);
  }
};

/// Reduces kVectors vectors of channels from c of the indices [begin, end); the last one has `last` lanes. Rounds after
/// each step, so that all instruction sets have the same result.
template <EmbeddingBag::Mode kMode, bool kWeighted, int kVectors, bool kPartial, class T, class I>
HWY_INLINE void ReduceColumns(const Table<T, I> table, int64_t begin, int64_t end, int64_t c, int64_t last, T* to) {
  constexpr bool kMax = kMode == EmbeddingBag::Mode::kMax;
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<FloatTag> result[kVectors];
  for (auto& r : result) r = hn::Zero(d);
  const T* const first = table.rows + c;
  int64_t used = 0;
  for (int64_t i = begin; i < end; ++i) {
    table.PrefetchLater(first, i, kVectors * lanes);
    if (table.IsPadding(i)) continue;
    const T* const row = table.Row(first, i);
    const auto weight = hn::Set(d, kWeighted ? ToFloat(table.weights[i]) : 1.0f);
    for (int v = 0; v < kVectors; ++v) {
      const auto x =
          kPartial ? LoadFloatN(d, row + v * lanes, static_cast<size_t>(last)) : LoadFloat(d, row + v * lanes);
      if constexpr (kMax) {
        result[v] = used == 0 ? x : hn::IfThenElse(hn::Gt(x, result[v]), x, result[v]);
      } else {
        result[v] = hn::Add(result[v], kWeighted ? hn::Mul(x, weight) : x);
      }
    }
    ++used;
  }
  for (int v = 0; v < kVectors; ++v) {
    if constexpr (kMode == EmbeddingBag::Mode::kMean) {
      result[v] = hn::Div(result[v], hn::Set(d, static_cast<float>(std::max<int64_t>(used, 1))));
    }
    if constexpr (kPartial) {
      StoreFloatN(result[v], d, to + c + v * lanes, static_cast<size_t>(last));
    } else {
      StoreFloat(result[v], d, to + c + v * lanes);
    }
  }
}

/// Reduces the indices [begin, end) to the row `to`. As many channels at a time as registers hold, so that a row is
/// read at once.
template <EmbeddingBag::Mode kMode, bool kWeighted = false, class T, class I>
void ReduceBag(const Table<T, I>& table, int64_t begin, int64_t end, T* to) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  int64_t c = 0;
  for (; c + 8 * lanes <= table.channels; c += 8 * lanes) {
    ReduceColumns<kMode, kWeighted, 8, false>(table, begin, end, c, lanes, to);
  }
  for (; c + 4 * lanes <= table.channels; c += 4 * lanes) {
    ReduceColumns<kMode, kWeighted, 4, false>(table, begin, end, c, lanes, to);
  }
  for (; c + lanes <= table.channels; c += lanes)
    ReduceColumns<kMode, kWeighted, 1, false>(table, begin, end, c, lanes, to);
  if (c < table.channels) ReduceColumns<kMode, kWeighted, 1, true>(table, begin, end, c, table.channels - c, to);
}

template <EmbeddingBag::Mode kMode, bool kWeighted = false, class T, class I>
void ReduceBags(const Context& context, const Table<T, I>& table, const Tensor<const I, 1>& offsets,
                const Tensor<T, 2>& output) {
  const int64_t bags = output.dim(0);
  const double rows = static_cast<double>(table.count) / static_cast<double>(std::max<int64_t>(bags, 1));
  const double of_bag = 5 + (1 + rows) * (2 + 0.2 * static_cast<double>(table.channels));
  context.ParallelFor(bags, GrainFor(of_bag), [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t m = first; m < last; ++m) {
      ReduceBag<kMode, kWeighted>(table, offsets[m], EndOfBag(offsets, m, table.count),
                                  output.data() + m * table.channels);
    }
  });
}

template <class T, class I>
Status Reduce(const EmbeddingBag& op, const Context& context, const Tensor<const T, 2>& weight,
              const Tensor<const I, 1>& indices, const Tensor<const I, 1>& offsets,
              const std::optional<Tensor<const T, 1>>& per_sample_weights, const Tensor<T, 2>& output) {
  POLYOP_RETURN_IF_ERROR(CheckBags(context, indices, offsets, weight.dim(0)));
  const Table<T, I> table{weight.data(), indices.data(), per_sample_weights ? per_sample_weights->data() : nullptr,
                          weight.dim(1), indices.dim(0), op.padding_idx};
  switch (op.mode) {
    case EmbeddingBag::Mode::kSum:
      if (table.weights == nullptr) {
        ReduceBags<EmbeddingBag::Mode::kSum>(context, table, offsets, output);
      } else {
        ReduceBags<EmbeddingBag::Mode::kSum, true>(context, table, offsets, output);
      }
      break;
    case EmbeddingBag::Mode::kMean: ReduceBags<EmbeddingBag::Mode::kMean>(context, table, offsets, output); break;
    case EmbeddingBag::Mode::kMax: ReduceBags<EmbeddingBag::Mode::kMax>(context, table, offsets, output); break;
  }
  return Status::Ok();
}

// Separate entry points for 32-bit and 64-bit indices, because a dispatch table takes templates of one argument.
template <class T>
Status EmbeddingBagI32(const EmbeddingBag& op, const Context& context, Tensor<const T, 2> weight,
                       Tensor<const int32_t, 1> indices, Tensor<const int32_t, 1> offsets,
                       std::optional<Tensor<const T, 1>> per_sample_weights, Tensor<T, 2> output) {
  return Reduce(op, context, weight, indices, offsets, per_sample_weights, output);
}
template <class T>
Status EmbeddingBagI64(const EmbeddingBag& op, const Context& context, Tensor<const T, 2> weight,
                       Tensor<const int64_t, 1> indices, Tensor<const int64_t, 1> offsets,
                       std::optional<Tensor<const T, 1>> per_sample_weights, Tensor<T, 2> output) {
  return Reduce(op, context, weight, indices, offsets, per_sample_weights, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(EmbeddingBag, EmbeddingBagI32, float, Half, BFloat16);
POLYOP_CPU_KERNELS(EmbeddingBag, EmbeddingBagI64, float, Half, BFloat16);
}  // namespace polyop
#endif

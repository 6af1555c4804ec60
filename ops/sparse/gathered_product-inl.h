// SPDX-License-Identifier: Apache-2.0
// The products of a sparse convolution: each pair's row of features times the filter's matrix for the pair's offset.
// The multiplication reads the rows in place, without a copy. Compiled once per instruction set; include it from a
// kernel file.
#if defined(POLYOP_OPS_SPARSE_GATHERED_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SPARSE_GATHERED_PRODUCT_INL_H_
#undef POLYOP_OPS_SPARSE_GATHERED_PRODUCT_INL_H_
#else
#define POLYOP_OPS_SPARSE_GATHERED_PRODUCT_INL_H_
#endif

#include <algorithm>

#include "hwy/cache_control.h"
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/sparse/activation.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Maximum number of outputs whose sums a task keeps: enough for most groups of pairs to be full, and few enough for
/// the L2 cache.
constexpr int64_t kMaxSparseRows = 1024;

/// The packed matrices of the filter, [offset][panel][channel][width of a panel].
struct SparseFilters {
  int64_t offsets, channels;
  GemmColumns columns;
  const float* packed = nullptr;

  const float* Of(int64_t offset) const { return packed + offset * channels * columns.stride(); }
};

/// Filters in any order: the weight of output o, offset f and channel c is weights[o * output_step + f * offset_step +
/// c * channel_step].
template <class T>
struct FilterLayout {
  const T* weights;
  int64_t output_step, offset_step, channel_step;

  /// Returns the layout of filters [outputs][offsets][channels].
  static FilterLayout Of(const T* filters, int64_t offsets, int64_t channels) {
    return {filters, offsets * channels, channels, 1};
  }
  /// Returns the layout of filters [channels][offsets][outputs].
  static FilterLayout OfTransposed(const T* filters, int64_t offsets, int64_t outputs) {
    return {filters, 1, outputs, offsets * outputs};
  }
};

/// Packs the filters; `to` has offsets * channels * columns.stride() floats.
template <class T>
void PackSparseFilters(const Context& context, const FilterLayout<T>& filters, SparseFilters* packed, float* to) {
  const SparseFilters& f = *packed;
  packed->packed = to;
  const int64_t panels = f.columns.panels(), size = f.channels * f.columns.panel();
  const int64_t panel = f.columns.panel(), outputs = f.columns.outputs;
  context.ParallelFor(f.offsets * panels, GrainFor(static_cast<double>(size)), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t p = item % panels;
      const T* const from = filters.weights + item / panels * filters.offset_step;
      float* const at = to + item * size;
      if (filters.output_step == 1) {  // rows of outputs are contiguous
        const int64_t first = p * panel, width = std::min(panel, outputs - first);
        for (int64_t c = 0; c < f.channels; ++c) {
          std::fill_n(at + c * panel + width, panel - width, 0.0f);
          WidenRow(from + c * filters.channel_step + first, width, at + c * panel);
        }
        continue;
      }
      const auto fill = [&](int64_t o, float* column, int64_t stride) {
        const T* const row = from + o * filters.output_step;
        for (int64_t c = 0; c < f.channels; ++c) column[c * stride] = ToFloat(row[c * filters.channel_step]);
      };
      PackPanel(f.columns, p, f.channels, fill, at);
    }
  });
}

/// Pairs of one offset, in groups of kGemmRows without repeated outputs.
class PairGroups {
 public:
  static constexpr int64_t kCapacity = kMaxSparseRows + 2 * kGemmRows;
  static constexpr int32_t kNone = -1;

  PairGroups() { std::fill_n(last_group_, kMaxSparseRows, -1); }

  bool full() const { return count_ + 2 * kGemmRows > kCapacity; }
  /// Adds a pair: row `in` of the features contributes to output `out` of the task. Requires: not full.
  void Add(int32_t in, int32_t out) {
    if (last_group_[out] == group_ + count_ / kGemmRows) Close();
    last_group_[out] = group_ + count_ / kGemmRows;
    in_[count_] = in;
    out_[count_++] = out;
  }
  /// Pads the last group with kNone.
  void Close() {
    for (; count_ % kGemmRows != 0; ++count_) in_[count_] = out_[count_] = kNone;
  }
  /// Removes all pairs. Requires: Close was called.
  void Clear() {
    group_ += count_ / kGemmRows;
    count_ = 0;
  }
  int64_t count() const { return count_; }
  int32_t in(int64_t i) const { return in_[i]; }
  int32_t out(int64_t i) const { return out_[i]; }
  /// Prefetches the rows of the group that begins at `i`.
  HWY_INLINE void Prefetch(int64_t i, const float* features, int64_t channels, int64_t depth) const {
    for (int64_t r = i; r < i + kGemmRows; ++r) {
      if (in_[r] == kNone) return;
      const float* const row = features + in_[r] * channels;
      for (int64_t c = 0; c < depth; c += 16) hwy::Prefetch(row + c);
    }
  }

 private:
  int64_t count_ = 0, group_ = 0;  // number of earlier groups that were removed
  int64_t last_group_[kMaxSparseRows];
  int32_t in_[kCapacity], out_[kCapacity];
};

// Adds features[in] times the matrix of one offset to sums[out] for all groups. Padding reads the row `zeros`, which
// has kGemmDepthBlock channels, and writes to `spare`.
template <int kVectors>
HWY_NOINLINE void MultiplyGroupsBy(const SparseFilters& filters, int64_t offset, const PairGroups& groups,
                                   const float* features, const float* zeros, float* sums, float* spare) {
  const int64_t panel = filters.columns.panel(), stride = filters.columns.stride(), channels = filters.channels;
  for (int64_t p = 0; p < filters.columns.panels(); ++p) {
    for (int64_t first = 0; first < channels; first += kGemmDepthBlock) {
      const int64_t depth = std::min(kGemmDepthBlock, channels - first);
      const float* const weights = filters.Of(offset) + (p * channels + first) * panel;
      for (int64_t g = 0; g < groups.count(); g += kGemmRows) {
        const float* rows[kGemmRows];
        float* to[kGemmRows];
        if (g + kGemmRows < groups.count()) groups.Prefetch(g + kGemmRows, features + first, channels, depth);
        for (int r = 0; r < kGemmRows; ++r) {
          const int32_t in = groups.in(g + r), out = groups.out(g + r);
          rows[r] = in == PairGroups::kNone ? zeros : features + in * channels + first;
          to[r] = (out == PairGroups::kNone ? spare : sums + out * stride) + p * panel;
        }
        GemmMicro<kVectors>([&rows](int r, int64_t k) { return rows[r][k]; }, depth, weights,
                            [&to](int r) { return to[r]; });
      }
    }
  }
}

inline void MultiplyGroups(const SparseFilters& filters, int64_t offset, const PairGroups& groups,
                           const float* features, const float* zeros, float* sums, float* spare) {
  switch (filters.columns.vectors) {
    case 1: return MultiplyGroupsBy<1>(filters, offset, groups, features, zeros, sums, spare);
    case 2: return MultiplyGroupsBy<2>(filters, offset, groups, features, zeros, sums, spare);
    default: return MultiplyGroupsBy<kGemmVectors>(filters, offset, groups, features, zeros, sums, spare);
  }
}

/// Writes activation(sums + bias) of a row to `to`. `bias` may be null.
template <class T>
void FinishSparseRow(const float* sums, const float* bias, int64_t count, const ActivationRule& activation, T* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float lane[hn::MaxLanes(d)];
  for (int64_t i = 0; i < count; i += lanes) {
    auto x = hn::LoadU(d, sums + i);  // rows of sums are padded to whole vectors
    if (bias != nullptr) x = hn::Add(x, hn::LoadU(d, bias + i));
    if (activation.type == SparseActivation::kRelu) {
      x = hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
    } else if (activation.type == SparseActivation::kLeakyRelu) {
      x = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, activation.alpha)), x);
    } else if (activation.type == SparseActivation::kSigmoid) {
      hn::Store(x, d, lane);
      for (int64_t j = 0; j < lanes; ++j) lane[j] = activation(lane[j]);
      x = hn::Load(d, lane);
    }
    if (i + lanes <= count) {
      StoreFloat(x, d, to + i);
    } else {
      StoreFloatN(x, d, to + i, static_cast<size_t>(count - i));
    }
  }
}

/// Returns the number of rows of a block of outputs.
inline int64_t SparseBlockRows(int64_t outputs) {
  constexpr int64_t kMaxSums = int64_t{1} << 16;  // floats: 256 KiB
  return std::clamp(kMaxSums / std::max<int64_t>(outputs, 1), int64_t{8}, kMaxSparseRows);
}

/// Computes out[o] = activation(sum over pairs (in, o) of offset f of filters[:, f, :] times rows[in] + bias), in
/// ascending order of f, from rows of `channels` floats. `for_pairs(f, block, add)` calls add(in, o - first output of
/// the block) for the pairs of one offset with outputs in a block of SparseBlockRows(). Requires: pairs are checked.
template <class T, class ForPairs>
Status GatheredRowsProduct(const Context& context, const float* from, int64_t channels, const FilterLayout<T>& filters,
                           int64_t offsets, const T* bias, const ActivationRule& activation, const ForPairs& for_pairs,
                           const Tensor<T, 2>& out) {
  const int64_t outputs = out.dim(1), rows = out.dim(0);
  SparseFilters packed{offsets, channels, GemmColumns(outputs)};
  const int64_t stride = packed.columns.stride(), block_rows = SparseBlockRows(outputs);
  const int64_t blocks = (rows + block_rows - 1) / block_rows;
  const Scratch<float> weights = context.Allocate<float>(offsets * channels * stride);
  const Scratch<float> biases = context.Allocate<float>(stride), zeros = context.Allocate<float>(kGemmDepthBlock);
  if (!weights || !biases || !zeros) {
    return Internal("out of memory: scratch for ", rows, " outputs of ", outputs, " channels");
  }
  PackSparseFilters(context, filters, &packed, weights.data());
  std::fill_n(zeros.data(), kGemmDepthBlock, 0.0f);
  std::fill_n(biases.data(), stride, 0.0f);
  for (int64_t k = 0; bias != nullptr && k < outputs; ++k) biases[k] = ToFloat(bias[k]);

  constexpr int64_t kGroupBytes = (static_cast<int64_t>(sizeof(PairGroups)) + 63) / 64 * 64;
  const auto compute = [&](char* memory, int64_t begin, int64_t end) {
    PairGroups& mine = *new (memory) PairGroups;
    float *const to = reinterpret_cast<float*>(memory + kGroupBytes), *const spare = to + block_rows * stride;
    std::fill_n(spare, stride, 0.0f);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * block_rows, size = std::min(block_rows, rows - first);
      std::fill_n(to, size * stride, 0.0f);
      for (int64_t f = 0; f < offsets; ++f) {
        const auto multiply = [&] {
          mine.Close();
          MultiplyGroups(packed, f, mine, from, zeros.data(), to, spare);
          mine.Clear();
        };
        for_pairs(f, block, [&](int32_t in, int32_t o) {
          if (mine.full()) multiply();
          mine.Add(in, o);
        });
        multiply();
      }
      for (int64_t o = 0; o < size; ++o) {
        FinishSparseRow(to + o * stride, bias != nullptr ? biases.data() : nullptr, outputs, activation,
                        out.data() + (first + o) * outputs);
      }
    }
  };
  const int64_t bytes = kGroupBytes + (block_rows + 1) * stride * static_cast<int64_t>(sizeof(float));
  if (context.ParallelForWithScratch<char>(blocks, 1, bytes, compute)) return Status::Ok();
  return Internal("out of memory: scratch for ", block_rows, " outputs of ", outputs, " channels");
}

/// Converts the rows of a tensor to floats. `memory` has space for them, or is empty if they are floats.
template <class T>
const float* RowsAsFloats(const Context& context, const Tensor<const T, 2>& rows, const Scratch<float>& memory) {
  if constexpr (std::is_same_v<T, float>) {
    return rows.data();
  } else {
    const int64_t channels = rows.dim(1);
    context.ParallelFor(rows.dim(0), GrainFor(static_cast<double>(channels)), [&](int64_t begin, int64_t end) {
      WidenRow(rows.data() + begin * channels, (end - begin) * channels, memory.data() + begin * channels);
    });
    return memory.data();
  }
}

/// GatheredRowsProduct of rows of any type and filters [outputs][offsets][channels].
template <class T, class ForPairs>
Status GatheredProduct(const Context& context, const Tensor<const T, 2>& features, const T* filters, int64_t offsets,
                       const T* bias, const ActivationRule& activation, const ForPairs& for_pairs,
                       const Tensor<T, 2>& out) {
  const int64_t channels = features.dim(1);
  const Scratch<float> widened = context.Allocate<float>(std::is_same_v<T, float> ? 0 : features.size());
  if (!widened) return Internal("out of memory: ", features.dim(0), " rows of ", channels, " channels");
  const float* const rows = RowsAsFloats(context, features, widened);
  return GatheredRowsProduct(context, rows, channels, FilterLayout<T>::Of(filters, offsets, channels), offsets, bias,
                             activation, for_pairs, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif

// SPDX-License-Identifier: Apache-2.0
// Gradients of a sparse convolution. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_SPARSE_SPARSE_CONV_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SPARSE_SPARSE_CONV_BACKWARD_INL_H_
#undef POLYOP_OPS_SPARSE_SPARSE_CONV_BACKWARD_INL_H_
#else
#define POLYOP_OPS_SPARSE_SPARSE_CONV_BACKWARD_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/sparse/gathered_product-inl.h"
#include "ops/sparse/pair_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The rows of floats whose products are the gradients: gradients of outputs and features.
struct SparseRows {
  const float* grads;
  int64_t outputs;  // channels of a row of gradients
  const float* features;
  int64_t channels;
};

/// Copies a row without a call: rows may be short.
HWY_INLINE void CopyRow(const float* from, int64_t count, float* to) {
  const GemmTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  if (i < count)
    hn::StoreN(hn::LoadN(d, from + i, static_cast<size_t>(count - i)), d, to + i, static_cast<size_t>(count - i));
}

/// Sums the products of the pairs of one offset: sums[k][c] of gradient k and feature c. Copies the rows of some pairs
/// at a time, so that the multiplication reads them in order.
class PairProducts {
 public:
  static constexpr int64_t kPairs = kGemmDepthBlock;

  static int64_t RowsFor(int64_t outputs) { return (outputs + kGemmRows - 1) / kGemmRows * kGemmRows; }
  static int64_t SumsFor(const SparseRows& rows) { return RowsFor(rows.outputs) * GemmColumns(rows.channels).stride(); }
  /// The number of floats of the constructor's `memory`.
  static int64_t FloatsFor(const SparseRows& rows) {
    return kPairs * (RowsFor(rows.outputs) + GemmColumns(rows.channels).stride());
  }

  /// `sums` are initially 0.
  PairProducts(const SparseRows& rows, float* memory, float* sums)
      : rows_(rows),
        columns_(rows.channels),
        pitch_(RowsFor(rows.outputs)),
        features_(memory),
        grads_(memory + kPairs * columns_.stride()),
        sums_(sums) {
    std::fill_n(memory, FloatsFor(rows), 0.0f);
    std::fill_n(sums, SumsFor(rows), 0.0f);
  }

  HWY_INLINE void Add(int64_t output, int64_t input) {
    const float* const from = rows_.features + input * rows_.channels;
    const int64_t panel = columns_.panel();
    for (int64_t p = 0, c = 0; c < rows_.channels; ++p, c += panel) {
      CopyRow(from + c, std::min(panel, rows_.channels - c), features_ + (p * kPairs + count_) * panel);
    }
    CopyRow(rows_.grads + output * rows_.outputs, rows_.outputs, grads_ + count_ * pitch_);
    if (++count_ == kPairs) Multiply();
  }
  /// Adds the products of the last pairs.
  void Multiply() {
    switch (columns_.vectors) {
      case 1: MultiplyBy<1>(); break;
      case 2: MultiplyBy<2>(); break;
      default: MultiplyBy<kGemmVectors>(); break;
    }
    count_ = 0;
  }

 private:
  template <int kVectors>
  HWY_NOINLINE void MultiplyBy() {
    const int64_t panel = columns_.panel(), stride = columns_.stride();
    for (int64_t p = 0; p < columns_.panels(); ++p) {
      for (int64_t k = 0; k < pitch_; k += kGemmRows) {
        float* const to = sums_ + k * stride + p * panel;
        GemmMicro<kVectors>([&](int r, int64_t pair) { return grads_[pair * pitch_ + k + r]; }, count_,
                            features_ + p * kPairs * panel, [&](int r) { return to + r * stride; });
      }
    }
  }

  const SparseRows rows_;
  const GemmColumns columns_;
  const int64_t pitch_;
  float *const features_, *const grads_, *const sums_;
  int64_t count_ = 0;
};

/// Computes the gradient `to` [outputs][offsets][channels] of filters. `for_pairs(f, block, add)` calls add(output,
/// input - first input of the block) for the pairs of one offset, in each of `blocks` blocks of `block_rows` inputs.
template <class T, class ForPairs>
Status SparseFiltersBackward(const Context& context, const SparseRows& rows, int64_t offsets, int64_t blocks,
                             int64_t block_rows, const ForPairs& for_pairs, T* to) {
  // Few offsets or many pairs are split, as far as the memory of their sums allows.
  constexpr int64_t kItems = 48, kMaxFloats = 8 << 20;
  const int64_t sums_size = PairProducts::SumsFor(rows), memory_size = PairProducts::FloatsFor(rows);
  const int64_t possible = kMaxFloats / std::max<int64_t>(offsets * sums_size, 1);
  const int64_t splits =
      std::clamp<int64_t>((kItems + offsets - 1) / offsets, 1, std::max<int64_t>(std::min(blocks, possible), 1));
  const int64_t items = offsets * splits, stride = GemmColumns(rows.channels).stride();
  const Scratch<float> sums = context.Allocate<float>(items * sums_size);
  if (!sums) return Internal("out of memory: gradients of ", offsets, " offsets of ", rows.outputs, " filters");
  const auto multiply = [&](float* memory, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t f = item / splits, split = item % splits;
      PairProducts products(rows, memory, sums.data() + item * sums_size);
      for (int64_t block = blocks * split / splits; block < blocks * (split + 1) / splits; ++block) {
        for_pairs(f, block,
                  [&](int64_t output, int64_t input) HWY_ATTR { products.Add(output, block * block_rows + input); });
      }
      products.Multiply();
    }
  };
  if (!context.ParallelForWithScratch<float>(items, 1, memory_size, multiply)) {
    return Internal("out of memory: pairs of ", rows.channels, " channels and ", rows.outputs, " filters");
  }
  const int64_t grain = GrainFor(static_cast<double>(rows.channels * splits));
  context.ParallelFor(rows.outputs * offsets, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t k = row / offsets, f = row % offsets;
      float* const sum = sums.data() + f * splits * sums_size + k * stride;
      for (int64_t split = 1; split < splits; ++split) {
        for (int64_t c = 0; c < rows.channels; ++c) sum[c] += sum[split * sums_size + c];
      }
      NarrowRow(sum, rows.channels, to + row * rows.channels);
    }
  });
  return Status::Ok();
}

/// Computes the sums of the columns of `rows` rows of floats.
template <class T>
Status ColumnSums(const Context& context, const float* from, int64_t rows, int64_t columns, T* to) {
  constexpr int64_t kParts = 16, kMinRows = 256;
  const int64_t parts = std::clamp<int64_t>(rows / kMinRows, 1, kParts);
  const Scratch<float> sums = context.Allocate<float>(parts * columns);
  if (!sums) return Internal("out of memory: sums of ", columns, " columns");
  std::fill_n(sums.data(), parts * columns, 0.0f);
  context.ParallelFor(parts, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t part = begin; part < end; ++part) {
      float* const sum = sums.data() + part * columns;
      for (int64_t r = rows * part / parts; r < rows * (part + 1) / parts; ++r) {
        for (int64_t c = 0; c < columns; ++c) sum[c] += from[r * columns + c];
      }
    }
  });
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t c = 0; c < columns; ++c) sums[c] += sums[part * columns + c];
  }
  NarrowRow(sums.data(), columns, to);
  return Status::Ok();
}

/// Computes the gradients of features and filters, each if it exists. `grads` [output_rows][outputs] are the gradients
/// of the sums, before bias and activation. `visit(f, add)` calls add(output, input) for the pairs of an offset.
/// Requires: pairs are checked.
template <class T, class Visit>
Status SparseConvBackward(const Context& context, const float* grads, int64_t output_rows, int64_t outputs,
                          const Tensor<const T, 2>& features, const T* filters, int64_t offsets, const Visit& visit,
                          const std::optional<Tensor<T, 2>>& grad_features,
                          const std::optional<Tensor<T, 5>>& grad_filters) {
  const int64_t channels = features.dim(1), inputs = features.dim(0);
  const bool with_features = grad_features && grad_features->size() > 0;
  const bool with_filters = grad_filters && grad_filters->size() > 0;
  if (output_rows == 0 || outputs == 0 || inputs == 0) {  // no pairs; the other extents may be huge
    if (with_features) std::fill_n(grad_features->data(), grad_features->size(), FromFloat<T>(0));
    if (with_filters) std::fill_n(grad_filters->data(), grad_filters->size(), FromFloat<T>(0));
    return Status::Ok();
  }
  if (!with_features && !with_filters) return Status::Ok();
  PairBlocks blocks(context, offsets, inputs, SparseBlockRows(channels));
  if (!blocks) return Internal("out of memory: blocks of ", inputs, " rows");
  blocks.Count(visit);
  const Scratch<SparsePair> pairs = context.Allocate<SparsePair>(blocks.size());
  if (!pairs) return Internal("out of memory: ", blocks.size(), " pairs");
  blocks.Sort(visit, pairs.data());
  const auto for_pairs = [&](int64_t f, int64_t block, const auto& add) { blocks.ForPairs(f, block, add); };
  if (with_features) {
    POLYOP_RETURN_IF_ERROR(
        GatheredRowsProduct(context, grads, outputs, FilterLayout<T>::OfTransposed(filters, offsets, channels), offsets,
                            static_cast<const T*>(nullptr), ActivationRule{}, for_pairs, *grad_features));
  }
  if (!with_filters) return Status::Ok();
  const Scratch<float> widened = context.Allocate<float>(std::is_same_v<T, float> ? 0 : features.size());
  if (!widened) return Internal("out of memory: ", inputs, " rows of ", channels, " channels");
  const SparseRows rows{grads, outputs, RowsAsFloats(context, features, widened), channels};
  return SparseFiltersBackward(context, rows, offsets, blocks.blocks(), blocks.block_rows(), for_pairs,
                               grad_filters->data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif

// SPDX-License-Identifier: Apache-2.0
// The gradients of a sparse convolution on the GPU. Those of the features are the products of a sparse convolution from
// outputs to inputs. For those of the filters, a block gathers rows of features and of gradients into shared memory;
// f16 and bf16 by pieces of 16 bytes for tensor cores.
//
// 1.75 million pairs of 64 channels and 64 filters are 14 billion multiplications and additions, 0.02 ms of an H200 in
// f16, and 450 MB from L2: 0.08 ms at 5.5 TB/s. Sorting the pairs takes longer.
#pragma once

#include <optional>

#include "kernels/cuda/copied_product.h"
#include "kernels/cuda/set_zero.h"
#include "kernels/cuda/split_sums.h"
#include "kernels/cuda/tile_product.h"
#include "ops/sparse/sorted_pairs_cuda.h"

namespace polyop {

/// The rows whose products are the gradients of filters, and their numbers of channels.
template <class T>
struct SparseRowsCuda {
  const T* grads;
  int64_t outputs;
  const T* features;
  int64_t channels;
};

namespace sparse_conv_internal {

// Computes sums for SparseFiltersBackwardCuda by pieces of 16 bytes.
template <class T>
Status SumFilterPieces(const CudaContext& cuda, const SparseRowsCuda<T>& rows, int64_t offsets, int64_t output_rows,
                       const SortedPairs& pairs, const SplitSums& sums) {
  using Product = CopiedProduct<T, 64, true, true>;
  constexpr int kPairs = 256, kMinBlocks = 3;  // pairs whose rows are known at a time
  const int64_t outputs = rows.outputs, channels = rows.channels;
  const Divider by_offsets(offsets), by_down(BlocksFor(outputs, Product::kRows)),
      by_across(BlocksFor(channels, Product::kColumns));
  const auto multiply = [=] POLYOP_DEVICE(Block& block) {
    Product product(block);
    int32_t* const from = block.Shared<int32_t>(kPairs);  // rows of gradients
    int32_t* const with = block.Shared<int32_t>(kPairs);  // rows of features
    int64_t row, column, f;
    const int64_t part = by_offsets.Split(by_down.Split(by_across.Split(block.index, &column), &row), &f);
    row *= Product::kRows;
    column *= Product::kColumns;
    const int64_t begin = pairs.FirstOf(f, 0), count = pairs.FirstOf(f + 1, 0) - begin;
    const int64_t end = begin + sums.Begin(part + 1, count);
    for (int64_t first = begin + sums.Begin(part, count); first < end; first += kPairs) {
      const int held = static_cast<int>(end - first < kPairs ? end - first : kPairs);
      block.ForThreads([&](int t) {
        for (int p = t; p < held; p += Product::kThreads) {
          from[p] = static_cast<int32_t>(static_cast<int64_t>(pairs.keys[first + p]) - f * output_rows);
          with[p] = pairs.others[first + p];
        }
      });
      product.Add([&](int step) { return (step + 1) * Product::kDepth < held ? step + 1 : -1; },
                  [&](int step, int at, int k) {
                    const int p = step * Product::kDepth + k;
                    const bool exists = p < held && row + at < outputs;
                    return Piece<T>{rows.grads + (exists ? from[p] * outputs + row + at : 0), exists};
                  },
                  [&](int step, int at, int k) {
                    const int p = step * Product::kDepth + k;
                    const bool exists = p < held && column + at < channels;
                    return Piece<T>{rows.features + (exists ? with[p] * channels + column + at : 0), exists};
                  });
    }
    product.Store([&](int at, int c, float sum) {
      if (row + at >= outputs || column + c >= channels) return;
      sums.Part(part)[((row + at) * offsets + f) * channels + column + c] = sum;
    });
  };
  const int64_t tiles = by_down.divisor() * by_across.divisor();
  return ForBlocks<Product::kThreads, kMinBlocks>(cuda, sums.parts * offsets * tiles, Product::kThreads,
                                                  Product::kSharedBytes + 2 * kPairs * 4, multiply);
}

// Returns whether the rows consist of pieces that SumFilterPieces copies.
template <class T>
bool HasPieces(const SparseRowsCuda<T>& rows, int64_t output_rows) {
  using Channels = Pack<T, 8>;
  if (rows.outputs % 8 != 0 || rows.channels % 8 != 0 || output_rows > INT32_MAX) return false;
  return Channels::IsAligned(rows.grads) && Channels::IsAligned(rows.features);
}

}  // namespace sparse_conv_internal

/// Computes the gradient `to` [outputs][offsets][channels] of filters. `pairs` has one row for each offset, and lists
/// the inputs in the order of the keys: the output is key % output_rows. Each block computes a tile of one offset for a
/// part of its pairs.
template <class T>
Status SparseFiltersBackwardCuda(const CudaContext& cuda, const SparseRowsCuda<T>& rows, int64_t offsets,
                                 int64_t output_rows, const SortedPairs& pairs, T* to) {
  using Product = TileProduct<T>;
  using Order = typename Product::Order;
  constexpr int kPairs = 64;
  constexpr int64_t kMinPairs = std::is_same_v<T, float> ? 2 * kPairs : 512;  // of a part
  const int64_t outputs = rows.outputs, channels = rows.channels;
  const int64_t tiles = BlocksFor(outputs, Product::RowsFor(outputs)) * BlocksFor(channels, Product::kColumns);
  const SplitSums sums = SplitSums::Allocate(cuda, outputs * offsets * channels, offsets * tiles,
                                             pairs.count / std::max<int64_t>(offsets, 1) / kMinPairs);
  if constexpr (!std::is_same_v<T, float>) {
    if (sparse_conv_internal::HasPieces(rows, output_rows)) {
      POLYOP_RETURN_IF_ERROR(sparse_conv_internal::SumFilterPieces(cuda, rows, offsets, output_rows, pairs, sums));
      return sums.Round(cuda, to);
    }
  }
  const Divider by_offsets(offsets);
  POLYOP_RETURN_IF_ERROR(
      ForTiles<T>(cuda, sums.parts * offsets, outputs, channels, 2 * kPairs * 8 + 16,
                  [=] POLYOP_DEVICE(Block& block, Product& product, const Tile& tile) {
                    int64_t* const from = block.Shared<int64_t>(kPairs);  // rows of gradients, -1 beyond the last pair
                    int64_t* const with = block.Shared<int64_t>(kPairs);  // rows of features
                    int64_t f;
                    const int64_t part = by_offsets.Split(tile.matrix, &f);
                    const int64_t begin = pairs.FirstOf(f, 0), count = pairs.FirstOf(f + 1, 0) - begin;
                    const int64_t end = begin + sums.Begin(part + 1, count);
                    for (int64_t first = begin + sums.Begin(part, count); first < end; first += kPairs) {
                      block.ForThreads([&](int t) {
                        for (int64_t p = t; p < kPairs; p += block.threads()) {
                          const bool valid = first + p < end;
                          from[p] = valid ? static_cast<int64_t>(pairs.keys[first + p]) - f * output_rows : -1;
                          with[p] = valid ? pairs.others[first + p] : -1;
                        }
                      });
                      for (int64_t p = 0; p < kPairs && first + p < end; p += Product::kDepth) {
                        product.template Add<Order::kAlong, Order::kAlong>(
                            [&](int k, int row) {
                              if (from[p + k] < 0 || row >= tile.rows) return 0.0f;
                              return ToFloat(rows.grads[from[p + k] * outputs + tile.row + row]);
                            },
                            [&](int k, int column) {
                              if (with[p + k] < 0 || column >= tile.columns) return 0.0f;
                              return ToFloat(rows.features[with[p + k] * channels + tile.column + column]);
                            });
                      }
                    }
                    product.Store([&](int row, int column, float sum) {
                      if (row >= tile.rows || column >= tile.columns) return;
                      sums.Part(part)[((tile.row + row) * offsets + f) * channels + tile.column + column] = sum;
                    });
                  }));
  return sums.Round(cuda, to);
}

/// Computes the gradients of features and filters, each if it exists. `grads` [output_rows][outputs] are the gradients
/// of the sums, before bias and activation. pair(i) returns pair i of `count`; one whose rows are out of range is
/// ignored. All sums have a fixed order.
template <class T, class Pair>
Status SparseConvBackwardCuda(const CudaContext& cuda, const T* grads, int64_t output_rows, int64_t outputs,
                              const Tensor<const T, 2>& features, const T* filters, int64_t offsets, int64_t count,
                              const Pair& pair, const std::optional<Tensor<T, 2>>& grad_features,
                              const std::optional<Tensor<T, 5>>& grad_filters) {
  const int64_t inputs = features.dim(0), channels = features.dim(1);
  if (output_rows == 0 || outputs == 0 || inputs == 0 || count == 0) {  // no pairs; the other extents may be huge
    if (grad_features) POLYOP_RETURN_IF_ERROR(SetZero(cuda, grad_features->size(), grad_features->data()));
    return grad_filters ? SetZero(cuda, grad_filters->size(), grad_filters->data()) : cuda.Check();
  }
  const auto valid = [=] POLYOP_DEVICE(const SparsePairAt& at) {
    return at.input >= 0 && at.input < inputs && at.output >= 0 && at.output < output_rows;
  };
  SortedPairs pairs;
  if (grad_features && channels > 0) {
    POLYOP_RETURN_IF_ERROR(SortedPairs::Sort(
        cuda, count, inputs, offsets,
        [=] POLYOP_DEVICE(int64_t i) {
          const SparsePairAt at = pair(i);
          return valid(at) ? SortedPairs::Entry{at.input, at.offset, static_cast<int32_t>(at.output)}
                           : SortedPairs::None();
        },
        &pairs));
    const GatheredFactors<T> factors{grads,
                                     output_rows,
                                     outputs,
                                     filters,
                                     FilterStrides::OfTransposed(offsets, channels),
                                     offsets,
                                     channels,
                                     nullptr,
                                     ActivationRule{},
                                     inputs,
                                     nullptr,
                                     grad_features->data()};
    POLYOP_RETURN_IF_ERROR(GatheredProductCuda<true>(cuda, factors, pairs));
  }
  if (!grad_filters || channels == 0) return cuda.Check();
  POLYOP_RETURN_IF_ERROR(SortedPairs::Sort(
      cuda, count, offsets, output_rows,
      [=] POLYOP_DEVICE(int64_t i) {
        const SparsePairAt at = pair(i);
        return valid(at) ? SortedPairs::Entry{at.offset, at.output, static_cast<int32_t>(at.input)}
                         : SortedPairs::None();
      },
      &pairs));
  const SparseRowsCuda<T> rows{grads, outputs, features.data(), channels};
  return SparseFiltersBackwardCuda(cuda, rows, offsets, output_rows, pairs, grad_filters->data());
}

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// The gradients of a sparse convolution on the GPU. Those of the features are the products of a sparse convolution from
// outputs to inputs. For those of the filters, a block gathers rows of features and of gradients into shared memory.
#pragma once

#include <optional>

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

/// Computes the gradient `to` [outputs][offsets][channels] of filters. `pairs` has one row for each offset, and lists
/// the inputs in the order of the keys: the output is key % output_rows. Each block computes a tile of one offset for a
/// part of its pairs.
template <class T>
Status SparseFiltersBackwardCuda(const CudaContext& cuda, const SparseRowsCuda<T>& rows, int64_t offsets,
                                 int64_t output_rows, const SortedPairs& pairs, T* to) {
  using Product = TileProduct<T>;
  using Order = typename Product::Order;
  constexpr int kPairs = 64;
  const int64_t outputs = rows.outputs, channels = rows.channels;
  const int64_t tiles = BlocksFor(outputs, Product::RowsFor(outputs)) * BlocksFor(channels, Product::kColumns);
  const SplitSums sums = SplitSums::Allocate(cuda, outputs * offsets * channels, offsets * tiles,
                                             pairs.count / std::max<int64_t>(offsets, 1) / (2 * kPairs));
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
    POLYOP_RETURN_IF_ERROR(GatheredProductCuda(cuda, factors, pairs));
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

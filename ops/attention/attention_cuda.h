// SPDX-License-Identifier: Apache-2.0
// Attention on the GPU: softmax(q k^T / sqrt(E) + mask) v.
//
// 8 x 900 queries and keys of 64 components are 0.8 GFLOP for each of the two products, nothing for tensor cores, but
// 26 MB of scores in float are written and read within L2, and 13 MB of weights in f16: 78 MB, 0.016 ms of an H200 at 5
// TB/s, in three launches. The second product has only 120 tiles of 64 queries, each with 29 steps of about 0.5 us.
#pragma once

#include <type_traits>

#include "kernels/cuda/copied_product.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/softmax_lines.h"
#include "kernels/cuda/tile_product.h"
#include "ops/attention/mask_strides.h"

namespace polyop {
namespace attention_internal {

// Returns the factor of the products of queries and keys with `size` components.
inline float ScaleOfScores(int64_t size) { return 1.0f / std::sqrt(static_cast<float>(size > 0 ? size : 1)); }

// scores = q k^T * scale + mask. A block computes a tile of queries x keys, from factors that are rounded to Factor.
template <class T, class Factor = T>
Status Score(const CudaContext& cuda, const Tensor<const T, 3>& q, const Tensor<const T, 3>& k, float scale,
             const T* mask, const MaskStrides& strides, float* scores) {
  using Product = TileProduct<Factor>;
  const int64_t queries = q.dim(1), keys = k.dim(1), size = q.dim(2);
  const T *from_q = q.data(), *from_k = k.data();
  const auto score = [=] POLYOP_DEVICE(Block&, Product& product, const Tile& tile) {
    const int64_t first_query = tile.matrix * queries + tile.row, first_key = tile.matrix * keys + tile.column;
    for (int64_t e = 0; e < size; e += Product::kDepth) {
      product.template Add<Product::Order::kDeep, Product::Order::kDeep>(
          [&](int depth, int row) {
            const bool inside = e + depth < size && row < tile.rows;
            return inside ? ToFloat(from_q[(first_query + row) * size + e + depth]) : 0.0f;
          },
          [&](int depth, int column) {
            const bool inside = e + depth < size && column < tile.columns;
            return inside ? ToFloat(from_k[(first_key + column) * size + e + depth]) : 0.0f;
          });
    }
    product.Store([&](int row, int column, float sum) {
      if (row >= tile.rows || column >= tile.columns) return;
      const int64_t query = tile.row + row, key = tile.column + column;
      sum *= scale;
      if (mask != nullptr) {
        sum += ToFloat(mask[tile.matrix * strides.batch + query * strides.row + key * strides.column]);
      }
      scores[(first_query + row) * keys + key] = sum;
    });
  };
  return ForTiles<Factor>(cuda, q.dim(0), queries, keys, 0, score);
}

// Turns scores into softmax weights. Also writes rounded weights unless `weights` is null.
template <class T>
Status WeighScores(const CudaContext& cuda, int64_t rows, int64_t keys, float* scores, T* weights) {
  return SoftmaxOfLines<false>(
      cuda, true, rows, keys, [=] POLYOP_DEVICE(int64_t row, int64_t s) { return scores[row * keys + s]; },
      [=] POLYOP_DEVICE(int64_t row, int64_t s, float weight) {
        scores[row * keys + s] = weight;
        if (weights != nullptr) weights[row * keys + s] = FromFloat<T>(weight);
      });
}

// out = weights v. A block computes a tile of queries x components, from factors that are rounded to Factor.
template <class T, class Factor = T>
Status Mix(const CudaContext& cuda, const float* weights, const Tensor<const T, 3>& v, const Tensor<T, 3>& out) {
  using Product = TileProduct<Factor>;
  const int64_t queries = out.dim(1), keys = v.dim(1), values = v.dim(2);
  const T* const from_v = v.data();
  T* const to = out.data();
  const auto mix = [=] POLYOP_DEVICE(Block&, Product& product, const Tile& tile) {
    const int64_t first_query = tile.matrix * queries + tile.row, first_key = tile.matrix * keys;
    for (int64_t s = 0; s < keys; s += Product::kDepth) {
      product.template Add<Product::Order::kDeep, Product::Order::kAlong>(
          [&](int depth, int row) {
            return s + depth < keys && row < tile.rows ? weights[(first_query + row) * keys + s + depth] : 0.0f;
          },
          [&](int depth, int column) {
            const bool inside = s + depth < keys && column < tile.columns;
            return inside ? ToFloat(from_v[(first_key + s + depth) * values + tile.column + column]) : 0.0f;
          });
    }
    product.Store([&](int row, int column, float sum) {
      if (row >= tile.rows || column >= tile.columns) return;
      to[(first_query + row) * values + tile.column + column] = FromFloat<T>(sum);
    });
  };
  return ForTiles<Factor>(cuda, out.dim(0), queries, values, 0, mix);
}

// Like Score, by pieces of 16 bytes.
template <class T>
Status ScorePieces(const CudaContext& cuda, const Tensor<const T, 3>& q, const Tensor<const T, 3>& k, float scale,
                   const T* mask, const MaskStrides& strides, float* scores) {
  using Product = CopiedProduct<T, 128, false, false>;
  const int64_t queries = q.dim(1), keys = k.dim(1), size = q.dim(2);
  const T *from_q = q.data(), *from_k = k.data();
  const Divider by_down(BlocksFor(queries, Product::kRows)), by_across(BlocksFor(keys, Product::kColumns));
  const auto score = [=] POLYOP_DEVICE(Block& block) {
    Product product(block);
    int64_t query, key;
    const int64_t matrix = by_down.Split(by_across.Split(block.index, &key), &query);
    query *= Product::kRows;
    key *= Product::kColumns;
    const T *const rows = from_q + (matrix * queries + query) * size, *const columns =
                                                                          from_k + (matrix * keys + key) * size;
    product.Add([&](int step) { return int64_t{step + 1} * Product::kDepth < size ? step + 1 : -1; },
                [&](int step, int row, int depth) {
                  const int64_t e = int64_t{step} * Product::kDepth + depth;
                  const bool exists = e < size && query + row < queries;
                  return Piece<T>{rows + (exists ? row * size + e : 0), exists};
                },
                [&](int step, int column, int depth) {
                  const int64_t e = int64_t{step} * Product::kDepth + depth;
                  const bool exists = e < size && key + column < keys;
                  return Piece<T>{columns + (exists ? column * size + e : 0), exists};
                });
    product.Store([&](int row, int column, float sum) {
      if (query + row >= queries || key + column >= keys) return;
      sum *= scale;
      if (mask != nullptr) {
        sum += ToFloat(mask[matrix * strides.batch + (query + row) * strides.row + (key + column) * strides.column]);
      }
      scores[(matrix * queries + query + row) * keys + key + column] = sum;
    });
  };
  return ForBlocks(cuda, q.dim(0) * by_down.divisor() * by_across.divisor(), Product::kThreads, Product::kSharedBytes,
                   score);
}

// Like Mix, by pieces of 16 bytes. Rows of weights are `step` apart, a multiple of 8, and continued by zeros.
template <class T>
Status MixPieces(const CudaContext& cuda, const T* weights, int64_t step_of_weights, const Tensor<const T, 3>& v,
                 const Tensor<T, 3>& out) {
  using Product = CopiedProduct<T, 64, false, true>;
  const int64_t queries = out.dim(1), keys = v.dim(1), values = v.dim(2);
  const T* const from_v = v.data();
  T* const to = out.data();
  const Divider by_down(BlocksFor(queries, Product::kRows)), by_across(BlocksFor(values, Product::kColumns));
  const auto mix = [=] POLYOP_DEVICE(Block& block) {
    Product product(block);
    int64_t query, value;
    const int64_t matrix = by_down.Split(by_across.Split(block.index, &value), &query);
    query *= Product::kRows;
    value *= Product::kColumns;
    const T* const rows = weights + (matrix * queries + query) * step_of_weights;
    const T* const columns = from_v + matrix * keys * values;
    product.Add([&](int step) { return int64_t{step + 1} * Product::kDepth < keys ? step + 1 : -1; },
                [&](int step, int row, int depth) {
                  const int64_t s = int64_t{step} * Product::kDepth + depth;
                  const bool exists = s < step_of_weights && query + row < queries;
                  return Piece<T>{rows + (exists ? row * step_of_weights + s : 0), exists};
                },
                [&](int step, int column, int depth) {
                  const int64_t s = int64_t{step} * Product::kDepth + depth;
                  const bool exists = s < keys && value + column < values;
                  return Piece<T>{columns + (exists ? s * values + value + column : 0), exists};
                });
    product.Store([&](int row, int column, float sum) {
      if (query + row >= queries || value + column >= values) return;
      to[(matrix * queries + query + row) * values + value + column] = FromFloat<T>(sum);
    });
  };
  return ForBlocks(cuda, out.dim(0) * by_down.divisor() * by_across.divisor(), Product::kThreads, Product::kSharedBytes,
                   mix);
}

// AttendCuda by pieces of 16 bytes, with weights that are rounded to T in scratch memory.
template <class T>
Status AttendByPieces(const CudaContext& cuda, const Tensor<const T, 3>& q, const Tensor<const T, 3>& k,
                      const Tensor<const T, 3>& v, const T* mask, const MaskStrides& strides, const Tensor<T, 3>& out,
                      T* weights, float* scores, T* rounded) {
  const int64_t rows = q.dim(0) * q.dim(1), keys = k.dim(1), step = BlocksFor(keys, 8) * 8;
  POLYOP_RETURN_IF_ERROR(ScorePieces(cuda, q, k, ScaleOfScores(q.dim(2)), mask, strides, scores));
  POLYOP_RETURN_IF_ERROR(SoftmaxOfLines<false>(
      cuda, true, rows, keys, [=] POLYOP_DEVICE(int64_t row, int64_t s) { return scores[row * keys + s]; },
      [=] POLYOP_DEVICE(int64_t row, int64_t s, float weight) {
        const T value = FromFloat<T>(weight);
        rounded[row * step + s] = value;
        if (weights != nullptr) weights[row * keys + s] = value;
        for (int64_t after = s + 1; s == keys - 1 && after < step; ++after) {
          rounded[row * step + after] = FromFloat<T>(0);
        }
      }));
  return MixPieces(cuda, static_cast<const T*>(rounded), step, v, out);
}

}  // namespace attention_internal

/// `mask` and `weights` may be null. Scores, and weights, are kept in scratch memory.
template <class T>
Status AttendCuda(const CudaContext& cuda, const Tensor<const T, 3>& q, const Tensor<const T, 3>& k,
                  const Tensor<const T, 3>& v, const T* mask, const MaskStrides& strides, const Tensor<T, 3>& out,
                  T* weights) {
  const int64_t rows = q.dim(0) * q.dim(1), keys = k.dim(1);
  float* const scores = cuda.Allocate<float>(rows * keys);
  if constexpr (!std::is_same_v<T, float>) {
    using Piece = Pack<T, 8>;
    T* const rounded = cuda.Allocate<T>(rows * BlocksFor(keys, 8) * 8);
    const bool aligned = Piece::IsAligned(q.data()) && Piece::IsAligned(k.data()) && Piece::IsAligned(v.data());
    if (aligned && q.dim(2) % 8 == 0 && v.dim(2) % 8 == 0 && q.dim(2) <= INT32_MAX) {
      return attention_internal::AttendByPieces(cuda, q, k, v, mask, strides, out, weights, scores, rounded);
    }
  }
  const float scale = attention_internal::ScaleOfScores(q.dim(2));
  POLYOP_RETURN_IF_ERROR(attention_internal::Score(cuda, q, k, scale, mask, strides, scores));
  POLYOP_RETURN_IF_ERROR(attention_internal::WeighScores(cuda, rows, keys, scores, weights));
  return attention_internal::Mix(cuda, scores, v, out);
}

}  // namespace polyop

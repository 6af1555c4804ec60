// SPDX-License-Identifier: Apache-2.0
// Attention on the GPU: softmax(q k^T / sqrt(E) + mask) v.
#pragma once

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

}  // namespace attention_internal

/// `mask` and `weights` may be null. Scores and weights are kept in float in scratch memory.
template <class T>
Status AttendCuda(const CudaContext& cuda, const Tensor<const T, 3>& q, const Tensor<const T, 3>& k,
                  const Tensor<const T, 3>& v, const T* mask, const MaskStrides& strides, const Tensor<T, 3>& out,
                  T* weights) {
  const int64_t rows = q.dim(0) * q.dim(1), keys = k.dim(1);
  float* const scores = cuda.Allocate<float>(rows * keys);
  const float scale = attention_internal::ScaleOfScores(q.dim(2));
  POLYOP_RETURN_IF_ERROR(attention_internal::Score(cuda, q, k, scale, mask, strides, scores));
  POLYOP_RETURN_IF_ERROR(attention_internal::WeighScores(cuda, rows, keys, scores, weights));
  return attention_internal::Mix(cuda, scores, v, out);
}

}  // namespace polyop

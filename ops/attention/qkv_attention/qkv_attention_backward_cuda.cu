// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "kernels/cuda/set_zero.h"
#include "kernels/cuda/warp_lanes.h"
#include "ops/attention/attention_cuda.h"
#include "ops/attention/qkv_attention/qkv_attention_backward.h"

namespace polyop {
namespace {

// Changes `grads`, with respect to the softmax `weights`, to the scaled gradients with respect to its inputs. One warp
// per row.
Status ScoresBackward(const CudaContext& cuda, int64_t rows, int64_t keys, float scale, const float* weights,
                      float* grads) {
  constexpr int kWarps = kThreadsPerBlock / kWarpLanes;
  constexpr int64_t kNone = INT64_MAX;
  return ForBlocks(cuda, BlocksFor(rows, kWarps), kThreadsPerBlock, 0, [=] POLYOP_DEVICE(Block& block) {
    block.ForWarps([&](int warp) {
      const int64_t row = block.index * kWarps + warp;
      if (row >= rows) return;
      const float* const weight = weights + row * keys;
      float* const grad = grads + row * keys;
      // Relative to the first largest weight's, the gradients do not cancel where that weight is nearly 1.
      Lanes<float> own, largest, origin, sum;
      Lanes<int64_t> index;
      ForLanes([&](int lane) {
        float found = -1;
        int64_t at = kNone;
        for (int64_t s = lane; s < keys; s += kWarpLanes) {
          if (weight[s] > found) {
            found = weight[s];
            at = s;
          }
        }
        own[lane] = largest[lane] = found;
        index[lane] = at;
      });
      largest.Sum<1, kWarpLanes>([](float a, float b) { return a > b ? a : b; });
      ForLanes([&](int lane) {
        if (own[lane] != largest[lane]) index[lane] = kNone;
      });
      index.Sum<1, kWarpLanes>([](int64_t a, int64_t b) { return a < b ? a : b; });
      ForLanes([&](int lane) {
        const float start = index[lane] != kNone ? grad[index[lane]] : 0.0f;
        origin[lane] = std::isfinite(start) ? start : 0.0f;
        float total = 0;
        for (int64_t s = lane; s < keys; s += kWarpLanes) total += weight[s] * (grad[s] - origin[lane]);
        sum[lane] = total;
      });
      sum.Sum<1, kWarpLanes>([](float a, float b) { return a + b; });
      ForLanes([&](int lane) {
        for (int64_t s = lane; s < keys; s += kWarpLanes) {
          grad[s] = weight[s] * (grad[s] - origin[lane] - sum[lane]) * scale;
        }
      });
    });
  });
}

// out = weights^T rows, with weights [B, L, S]. A block computes a tile of keys x components.
template <class T>
Status MixTransposed(const CudaContext& cuda, const float* weights, const Tensor<const T, 3>& rows,
                     const Tensor<T, 3>& out) {
  using Product = TileProduct<float>;
  const int64_t queries = rows.dim(1), keys = out.dim(1), size = out.dim(2);
  const T* const from = rows.data();
  T* const to = out.data();
  const auto mix = [=] POLYOP_DEVICE(Block&, Product& product, const Tile& tile) {
    const int64_t first = tile.matrix * queries;
    for (int64_t l = 0; l < queries; l += Product::kDepth) {
      product.template Add<Product::Order::kAlong, Product::Order::kAlong>(
          [&](int depth, int row) {
            const bool inside = l + depth < queries && row < tile.rows;
            return inside ? weights[(first + l + depth) * keys + tile.row + row] : 0.0f;
          },
          [&](int depth, int column) {
            const bool inside = l + depth < queries && column < tile.columns;
            return inside ? ToFloat(from[(first + l + depth) * size + tile.column + column]) : 0.0f;
          });
    }
    product.Store([&](int row, int column, float sum) {
      if (row >= tile.rows || column >= tile.columns) return;
      to[(tile.matrix * keys + tile.row + row) * size + tile.column + column] = FromFloat<T>(sum);
    });
  };
  return ForTiles<float>(cuda, out.dim(0), keys, size, 0, mix);
}

// Keeps the weights and their gradients in float in scratch memory. Products are in float, because gradients may exceed
// the range of float16.
template <class T>
Status QkvAttentionBackwardCuda(const QkvAttentionBackward&, const CudaContext& cuda, Tensor<const T, 3> grad_output,
                                Tensor<const T, 3> query, Tensor<const T, 3> key, Tensor<const T, 3> value,
                                std::optional<Tensor<T, 3>> grad_query, std::optional<Tensor<T, 3>> grad_key,
                                std::optional<Tensor<T, 3>> grad_value) {
  using namespace attention_internal;
  if (grad_output.size() == 0) {  // the other extents may be huge
    for (const auto& gradient : {grad_query, grad_key, grad_value}) {
      if (gradient) POLYOP_RETURN_IF_ERROR(SetZero(cuda, gradient->size(), gradient->data()));
    }
    return cuda.Check();
  }
  const int64_t rows = query.dim(0) * query.dim(1), keys = key.dim(1);
  const bool of_scores = grad_query || grad_key;
  const float scale = ScaleOfScores(query.dim(2));
  float* const weights = cuda.Allocate<float>(rows * keys);
  float* const grads = cuda.Allocate<float>(of_scores ? rows * keys : 0);
  POLYOP_RETURN_IF_ERROR((Score<T, float>(cuda, query, key, scale, nullptr, {}, weights)));
  POLYOP_RETURN_IF_ERROR(WeighScores<T>(cuda, rows, keys, weights, nullptr));
  if (grad_value) POLYOP_RETURN_IF_ERROR(MixTransposed(cuda, weights, grad_output, *grad_value));
  if (!of_scores) return cuda.Check();
  POLYOP_RETURN_IF_ERROR((Score<T, float>(cuda, grad_output, value, 1, nullptr, {}, grads)));
  POLYOP_RETURN_IF_ERROR(ScoresBackward(cuda, rows, keys, scale, weights, grads));
  if (grad_query) POLYOP_RETURN_IF_ERROR((Mix<T, float>(cuda, grads, key, *grad_query)));
  if (grad_key) POLYOP_RETURN_IF_ERROR(MixTransposed(cuda, grads, query, *grad_key));
  return cuda.Check();
}

POLYOP_CUDA_KERNELS(QkvAttentionBackward, QkvAttentionBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

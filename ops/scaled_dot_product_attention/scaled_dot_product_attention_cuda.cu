#include "core/block_reduce_cuda.h"
#include "core/tile_product_cuda.h"
#include "ops/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace polyop {
namespace {

// scores = q k^T / sqrt(E) + mask. A block makes a tile of queries x keys.
template <class T>
Status Score(const CudaContext& cuda, const Tensor<const T, 3>& q, const Tensor<const T, 3>& k, const T* mask,
             const MaskStrides& strides, float* scores) {
  using Product = TileProduct<T>;
  const int64_t queries = q.dim(1), keys = k.dim(1), size = q.dim(2);
  const int rows = Product::RowsFor(queries);
  const T *from_q = q.data(), *from_k = k.data();
  const float scale = 1.0f / std::sqrt(static_cast<float>(size > 0 ? size : 1));
  const Divider by_columns(BlocksFor(keys, Product::kColumns)), by_rows(BlocksFor(queries, rows));
  const int64_t blocks = q.dim(0) * BlocksFor(queries, rows) * BlocksFor(keys, Product::kColumns);
  const int threads = Product::ThreadsFor(rows);
  return ForBlocks(cuda, blocks, threads, Product::SharedBytes(rows), [=] POLYOP_DEVICE(Block& block) {
    Product product(block, rows);
    int64_t first_query, first_key;
    const int64_t batch = by_rows.Split(by_columns.Split(block.index, &first_key), &first_query);
    first_query *= rows;
    first_key *= Product::kColumns;
    for (int64_t e = 0; e < size; e += Product::kDepth) {
      product.template Add<Product::Order::kDeep, Product::Order::kDeep>(
          [&](int depth, int row) {
            const bool inside = e + depth < size && first_query + row < queries;
            return inside ? ToFloat(from_q[(batch * queries + first_query + row) * size + e + depth]) : 0.0f;
          },
          [&](int depth, int column) {
            const bool inside = e + depth < size && first_key + column < keys;
            return inside ? ToFloat(from_k[(batch * keys + first_key + column) * size + e + depth]) : 0.0f;
          });
    }
    product.Store([&](int row, int column, float sum) {
      const int64_t query = first_query + row, key = first_key + column;
      if (query >= queries || key >= keys) return;
      sum *= scale;
      if (mask != nullptr) {
        sum += ToFloat(mask[batch * strides.batch + query * strides.row + key * strides.column]);
      }
      scores[(batch * queries + query) * keys + key] = sum;
    });
  });
}

// A block for each row of scores, which become weights.
template <class T>
Status Softmax(const CudaContext& cuda, int64_t rows, int64_t keys, float* scores, T* weights) {
  constexpr int kThreads = 128;
  return ForBlocks(cuda, rows, kThreads, kThreads * 4 + 32, [=] POLYOP_DEVICE(Block& block) {
    float* const partial = block.Shared<float>(kThreads);
    float* const most = block.Shared<float>(1);
    float* const row = scores + block.index * keys;
    block.ForThreads([&](int t) {
      float best = -INFINITY;
      for (int64_t s = t; s < keys; s += kThreads) best = row[s] != row[s] || row[s] > best ? row[s] : best;
      partial[t] = best;
    });
    ReduceBlock(block, partial, kThreads, [](float a, float b) { return a != a || a > b ? a : b; });
    block.ForThreads([&](int t) {
      if (t == 0) *most = partial[0];
    });
    block.ForThreads([&](int t) {
      float sum = 0;
      for (int64_t s = t; s < keys; s += kThreads) sum += row[s] = std::exp(row[s] - *most);
      partial[t] = sum;
    });
    ReduceBlock(block, partial, kThreads, [](float a, float b) { return a + b; });
    block.ForThreads([&](int t) {
      for (int64_t s = t; s < keys; s += kThreads) {
        row[s] /= partial[0];
        weights[block.index * keys + s] = FromFloat<T>(row[s]);
      }
    });
  });
}

// out = weights v. A block makes a tile of queries x components.
template <class T>
Status Mix(const CudaContext& cuda, const float* weights, const Tensor<const T, 3>& v, const Tensor<T, 3>& out) {
  using Product = TileProduct<T>;
  const int64_t queries = out.dim(1), keys = v.dim(1), values = v.dim(2);
  const int rows = Product::RowsFor(queries);
  const T* const from_v = v.data();
  T* const to = out.data();
  const Divider by_columns(BlocksFor(values, Product::kColumns)), by_rows(BlocksFor(queries, rows));
  const int64_t blocks = out.dim(0) * BlocksFor(queries, rows) * BlocksFor(values, Product::kColumns);
  const int threads = Product::ThreadsFor(rows);
  return ForBlocks(cuda, blocks, threads, Product::SharedBytes(rows), [=] POLYOP_DEVICE(Block& block) {
    Product product(block, rows);
    int64_t first_query, first_value;
    const int64_t batch = by_rows.Split(by_columns.Split(block.index, &first_value), &first_query);
    first_query *= rows;
    first_value *= Product::kColumns;
    for (int64_t s = 0; s < keys; s += Product::kDepth) {
      product.template Add<Product::Order::kDeep, Product::Order::kAlong>(
          [&](int depth, int row) {
            const bool inside = s + depth < keys && first_query + row < queries;
            return inside ? weights[(batch * queries + first_query + row) * keys + s + depth] : 0.0f;
          },
          [&](int depth, int column) {
            const bool inside = s + depth < keys && first_value + column < values;
            return inside ? ToFloat(from_v[(batch * keys + s + depth) * values + first_value + column]) : 0.0f;
          });
    }
    product.Store([&](int row, int column, float sum) {
      const int64_t query = first_query + row, value = first_value + column;
      if (query < queries && value < values) to[(batch * queries + query) * values + value] = FromFloat<T>(sum);
    });
  });
}

// The scores stay in float, in scratch, until they are weights.
template <class T>
Status AttentionCuda(const ScaledDotProductAttention&, const CudaContext& cuda, Tensor<const T, 3> q,
                     Tensor<const T, 3> k, Tensor<const T, 3> v, std::optional<Tensor<const T, kAnyRank>> mask,
                     Tensor<T, 3> out, Tensor<T, 3> weights) {
  MaskStrides strides;
  if (mask) POLYOP_RETURN_IF_ERROR(MaskStrides::Of(mask->shape(), weights.shape(), &strides));
  float* const scores = cuda.Allocate<float>(weights.size());
  POLYOP_RETURN_IF_ERROR(Score(cuda, q, k, mask ? mask->data() : nullptr, strides, scores));
  POLYOP_RETURN_IF_ERROR(Softmax(cuda, q.dim(0) * q.dim(1), k.dim(1), scores, weights.data()));
  return Mix(cuda, scores, v, out);
}

POLYOP_CUDA_KERNEL(ScaledDotProductAttention, AttentionF32, AttentionCuda<float>);
POLYOP_CUDA_KERNEL(ScaledDotProductAttention, AttentionF16, AttentionCuda<Half>);
POLYOP_CUDA_KERNEL(ScaledDotProductAttention, AttentionBF16, AttentionCuda<BFloat16>);

}  // namespace
}  // namespace polyop

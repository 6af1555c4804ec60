#include "kernels/cuda/cuda.h"
#include "ops/neighborhood_attention/neighborhood_attention_backward.h"

namespace polyop {
namespace {

constexpr int kThreads = 32;

// The tensors as rows [batch * positions * heads].
template <class T>
struct AttentionRows {
  const T *grads, *queries, *keys, *values;
  int64_t positions, heads, depth, columns, most;
  float scale;
  Neighborhood neighborhood;

  /// Returns the row of another position of a row's batch entry and head.
  POLYOP_HD int64_t RowAt(int64_t row, int64_t position) const {
    const int64_t entry = row / heads / positions;
    return (entry * positions + position) * heads + row % heads;
  }
  POLYOP_HD int64_t QueryPosition(int64_t row) const { return row / heads % positions; }
};

// Returns the first index of the maximum of kThreads numbers.
POLYOP_HD inline int LargestOf(const float* values) {
  int largest = 0;
  for (int i = 1; i < kThreads; ++i) {
    if (values[i] > values[largest]) largest = i;
  }
  return largest;
}

// Each group of 32 threads computes a query of a head: the weights of its keys and the gradients of its products, both
// [rows, most], and the query's gradient, unless that is null.
template <class T>
Status QueryGradients(const CudaContext& cuda, const AttentionRows<T>& in, int64_t rows, float* all_weights,
                      float* all_products, T* grad_query) {
  return ForBlocks<kThreads>(cuda, rows, kThreads, 4 * kThreads * 4, [=] POLYOP_DEVICE(Block& block) {
    float *const maxima = block.Shared<float>(kThreads), *const sums = block.Shared<float>(kThreads);
    float *const means = block.Shared<float>(kThreads), *const shifts = block.Shared<float>(kThreads);
    const int64_t row = block.index, position = in.QueryPosition(row);
    float *const weights = all_weights + row * in.most, *const products = all_products + row * in.most;
    block.ForThreads([&](int t) {
      const T *const query = in.queries + row * in.depth, *const grad = in.grads + row * in.columns;
      float max = -INFINITY, shift = 0;
      in.neighborhood.ForNeighbors(position, [&](int64_t j, int64_t at) {
        if (j % kThreads != t) return;
        const int64_t other = in.RowAt(row, at);
        float product = 0, of_weight = 0;
        for (int64_t c = 0; c < in.depth; ++c) product += ToFloat(query[c]) * ToFloat(in.keys[other * in.depth + c]);
        for (int64_t c = 0; c < in.columns; ++c) {
          of_weight += ToFloat(grad[c]) * ToFloat(in.values[other * in.columns + c]);
        }
        weights[j] = product * in.scale;
        products[j] = of_weight;
        if (!(weights[j] > max || std::isnan(weights[j]))) return;
        max = weights[j];
        shift = of_weight;
      });
      maxima[t] = max;
      shifts[t] = shift;
    });
    block.ForThreads([&](int t) {
      float max = -INFINITY, sum = 0;
      for (int i = 0; i < kThreads; ++i) max = maxima[i] > max || std::isnan(maxima[i]) ? maxima[i] : max;
      const int64_t count = in.neighborhood.ForNeighbors(position, [](int64_t, int64_t) {});
      for (int64_t j = t; j < count; j += kThreads) sum += weights[j] = std::exp(weights[j] - max);
      sums[t] = sum;
    });
    block.ForThreads([&](int t) {
      float total = 0, mean = 0;
      for (int i = 0; i < kThreads; ++i) total += sums[i];
      // Relative to the largest weight's, the gradients do not cancel where that weight is nearly 1.
      const float shift = shifts[LargestOf(maxima)];
      const int64_t count = in.neighborhood.ForNeighbors(position, [](int64_t, int64_t) {});
      for (int64_t j = t; j < count; j += kThreads) {
        weights[j] /= total;
        products[j] -= shift;
        mean += weights[j] * products[j];
      }
      means[t] = mean;
    });
    block.ForThreads([&](int t) {
      float mean = 0;
      for (int i = 0; i < kThreads; ++i) mean += means[i];
      const int64_t count = in.neighborhood.ForNeighbors(position, [](int64_t, int64_t) {});
      for (int64_t j = t; j < count; j += kThreads) products[j] = weights[j] * (products[j] - mean) * in.scale;
    });
    block.ForThreads([&](int t) {
      if (grad_query == nullptr) return;
      for (int64_t c = t; c < in.depth; c += kThreads) {
        float sum = 0;
        in.neighborhood.ForNeighbors(position, [&](int64_t j, int64_t at) {
          sum += products[j] * ToFloat(in.keys[in.RowAt(row, at) * in.depth + c]);
        });
        grad_query[row * in.depth + c] = FromFloat<T>(sum);
      }
    });
  });
}

// Each thread computes an element of the gradient of keys, or values: the sum over the queries whose windows contain
// the position of factors[query][neighbour] * from[query].
template <class T>
Status SumOverQueries(const CudaContext& cuda, const AttentionRows<T>& in, int64_t rows, const float* factors,
                      const T* from, int64_t columns, T* to) {
  const Divider by_columns(columns);
  return ForEach(cuda, rows * columns, [=] POLYOP_DEVICE(int64_t element) {
    int64_t c;
    const int64_t row = by_columns.Split(element, &c);
    float sum = 0;
    in.neighborhood.ForQueries(in.QueryPosition(row), [&](int64_t at, int64_t j) {
      const int64_t query = in.RowAt(row, at);
      sum += factors[query * in.most + j] * ToFloat(from[query * columns + c]);
    });
    to[element] = FromFloat<T>(sum);
  });
}

template <class T>
Status NeighborhoodAttentionBackwardCuda(const NeighborhoodAttentionBackward& op, const CudaContext& cuda,
                                         Tensor<const T, kAnyRank> grad_output, Tensor<const T, kAnyRank> query,
                                         Tensor<const T, kAnyRank> key, Tensor<const T, kAnyRank> value,
                                         std::optional<Tensor<T, kAnyRank>> grad_query,
                                         std::optional<Tensor<T, kAnyRank>> grad_key,
                                         std::optional<Tensor<T, kAnyRank>> grad_value) {
  Neighborhood neighborhood;
  POLYOP_RETURN_IF_ERROR(Neighborhood::Of(op, query.shape(), &neighborhood));
  const int64_t rank = query.rank(), heads = query.dim(rank - 2), depth = query.dim(rank - 1);
  const int64_t rows = query.dim(0) * neighborhood.positions() * heads;
  const AttentionRows<T> in{grad_output.data(),
                            query.data(),
                            key.data(),
                            value.data(),
                            neighborhood.positions(),
                            heads,
                            depth,
                            value.dim(rank - 1),
                            neighborhood.max_neighbors(),
                            static_cast<float>(ScaleOf(op, depth)),
                            neighborhood};
  float *const weights = cuda.Allocate<float>(rows * in.most), *const products = cuda.Allocate<float>(rows * in.most);
  POLYOP_RETURN_IF_ERROR(QueryGradients(cuda, in, rows, weights, products, grad_query ? grad_query->data() : nullptr));
  if (grad_key) {
    POLYOP_RETURN_IF_ERROR(SumOverQueries(cuda, in, rows, products, in.queries, depth, grad_key->data()));
  }
  if (!grad_value) return Status::Ok();
  return SumOverQueries(cuda, in, rows, weights, in.grads, in.columns, grad_value->data());
}

POLYOP_CUDA_KERNELS(NeighborhoodAttentionBackward, NeighborhoodAttentionBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

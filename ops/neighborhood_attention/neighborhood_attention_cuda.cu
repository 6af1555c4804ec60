#include "kernels/cuda/cuda.h"
#include "ops/neighborhood_attention/neighborhood_attention.h"

namespace polyop {
namespace {

// Each group of 32 threads computes a query of a head: its threads share the keys, then the columns. The weights are in
// scratch memory.
template <class T>
Status NeighborhoodAttentionCuda(const NeighborhoodAttention& op, const CudaContext& cuda,
                                 Tensor<const T, kAnyRank> query, Tensor<const T, kAnyRank> key,
                                 Tensor<const T, kAnyRank> value, Tensor<T, kAnyRank> output) {
  Neighborhood neighborhood;
  POLYOP_RETURN_IF_ERROR(Neighborhood::Of(op, query.shape(), &neighborhood));
  const int64_t rank = query.rank(), heads = query.dim(rank - 2), depth = query.dim(rank - 1);
  const int64_t columns = value.dim(rank - 1), positions = neighborhood.positions();
  const int64_t rows = query.dim(0) * positions * heads, most = neighborhood.max_neighbors();
  const float scale = static_cast<float>(ScaleOf(op, depth));
  const T *const queries = query.data(), *const keys = key.data(), *const values = value.data();
  T* const to = output.data();
  float* const scratch = cuda.Allocate<float>(rows * most);
  constexpr int kThreads = 32;
  return ForBlocks<kThreads>(cuda, rows, kThreads, 2 * kThreads * 4, [=] POLYOP_DEVICE(Block& block) {
    float* const maxima = block.Shared<float>(kThreads);
    float* const sums = block.Shared<float>(kThreads);
    const int64_t h = block.index % heads, q = block.index / heads, first = q / positions * positions;
    float* const weights = scratch + block.index * most;
    const auto row = [=](int64_t at) { return (first + at) * heads + h; };
    block.ForThreads([&](int t) {
      const T* const x = queries + block.index * depth;
      float max = -INFINITY;
      neighborhood.ForNeighbors(q % positions, [&](int64_t j, int64_t at) {
        if (j % kThreads != t) return;
        float product = 0;
        for (int64_t c = 0; c < depth; ++c) product += ToFloat(x[c]) * ToFloat(keys[row(at) * depth + c]);
        weights[j] = product * scale;
        max = weights[j] > max || std::isnan(weights[j]) ? weights[j] : max;
      });
      maxima[t] = max;
    });
    block.ForThreads([&](int t) {
      float max = -INFINITY, sum = 0;
      for (int i = 0; i < kThreads; ++i) max = maxima[i] > max || std::isnan(maxima[i]) ? maxima[i] : max;
      const int64_t count = neighborhood.ForNeighbors(q % positions, [](int64_t, int64_t) {});
      for (int64_t j = t; j < count; j += kThreads) sum += weights[j] = std::exp(weights[j] - max);
      sums[t] = sum;
    });
    block.ForThreads([&](int t) {
      float total = 0;
      for (int i = 0; i < kThreads; ++i) total += sums[i];
      for (int64_t c = t; c < columns; c += kThreads) {
        float sum = 0;
        neighborhood.ForNeighbors(
            q % positions, [&](int64_t j, int64_t at) { sum += weights[j] * ToFloat(values[row(at) * columns + c]); });
        to[block.index * columns + c] = FromFloat<T>(sum / total);
      }
    });
  });
}

POLYOP_CUDA_KERNELS(NeighborhoodAttention, NeighborhoodAttentionCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

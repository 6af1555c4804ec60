// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/points/assign_score_withk/assign_score_withk.h"

namespace polyop {
namespace {

// Each thread computes one element; consecutive threads read consecutive features.
template <class T, class I>
Status AssignScoreWithkCuda(const AssignScoreWithk&, const CudaContext& cuda, Tensor<const T, 4> scores,
                            Tensor<const T, 4> point_features, Tensor<const T, 4> center_features,
                            Tensor<const I, 3> knn_idx, Tensor<T, 4> output) {
  const int64_t queries = scores.dim(1), neighbours = scores.dim(2), matrices = scores.dim(3);
  const int64_t points = point_features.dim(1), size = point_features.dim(3);
  const T *const score = scores.data(), *const point = point_features.data(), *const center = center_features.data();
  const I* const index = knn_idx.data();
  T* const to = output.data();
  const Divider by_size(size), by_neighbours(neighbours), by_queries(queries);
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t o, k, query;
    const int64_t pair = by_size.Split(i, &o), item = by_neighbours.Split(pair, &k);
    const int64_t batch = by_queries.Split(item, &query);
    const int64_t neighbour = index[pair], centre = index[item * neighbours];
    float sum = 0;
    if (neighbour >= 0 && neighbour < points && centre >= 0 && centre < points) {
      const T* const from = point + (batch * points + neighbour) * matrices * size + o;
      const T* const base = center + (batch * points + centre) * matrices * size + o;
      for (int64_t m = 0; m < matrices; ++m) {
        sum += ToFloat(score[pair * matrices + m]) * (ToFloat(from[m * size]) - ToFloat(base[m * size]));
      }
    }
    to[((batch * size + o) * queries + query) * neighbours + k] = FromFloat<T>(sum);
  });
}

POLYOP_CUDA_KERNELS(AssignScoreWithk, AssignScoreWithkCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop

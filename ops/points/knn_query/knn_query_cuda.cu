// SPDX-License-Identifier: Apache-2.0
#include "ops/points/knn_query/knn_query.h"
#include "ops/points/nearest_cuda.h"

namespace polyop {
namespace {

constexpr float kNoDistance = 1e5f;

// Returns the end of a segment, clamped to [before, total], so that invalid ends, which are errors on the CPU, do not
// cause out-of-bounds reads.
template <class I>
POLYOP_HD int64_t EndOf(const I* ends, int64_t segment, int64_t before, int64_t total) {
  const int64_t end = static_cast<int64_t>(ends[segment]);
  return end < before ? before : end > total ? total : end;
}

template <class I, class J>
struct KnnQuerySearch {
  using State = NearestState;

  const float* queries;
  const I* ends;
  const J* query_ends;  // null: the points are the queries
  int64_t num_points, segments;
  NearestLists lists;
  int32_t* idx;
  float* dist;

  POLYOP_HD PointRange Start(int64_t q, State& state) const {
    state.Start(lists, q, queries + 3 * q, 0);  // row indices refer to all clouds
    int64_t query_end = 0, begin = 0, end = 0;
    for (int64_t s = 0; s < segments; ++s) {  // the segment that contains query q
      begin = end;
      end = EndOf(ends, s, begin, num_points);
      query_end = query_ends != nullptr ? EndOf(query_ends, s, query_end, lists.queries) : end;
      if (q < query_end) return {begin, end};
    }
    return {0, 0};
  }
  POLYOP_HD void Offer(State& state, const float* point, int64_t row) const { state.Offer(point, row, lists.k); }
  POLYOP_HD void Finish(State& state, int64_t q) const { WriteNearest(*this, state.nearest, q); }
  POLYOP_HD void Write(int64_t q, int64_t k, bool has, double squared, int32_t index) const {
    idx[q * lists.k + k] = has ? index : -1;
    dist[q * lists.k + k] = has ? static_cast<float>(std::sqrt(squared)) : kNoDistance;
  }
};

template <class K, class I, class J>
Status KnnQueryCuda(const KnnQuery&, const CudaContext& cuda, Tensor<const K, 0>, Tensor<const float, 2> xyz,
                    Tensor<const I, 1> offset, std::optional<Tensor<const float, 2>> new_xyz,
                    std::optional<Tensor<const J, 1>> new_offset, Tensor<int32_t, 2> idx, Tensor<float, 2> dist) {
  const NearestLists lists = NearestLists::Allocate(cuda, idx.dim(0), idx.dim(1));
  return SearchNearest(cuda, xyz.data(), xyz.dim(0), idx.dim(0),
                       KnnQuerySearch<I, J>{new_xyz ? new_xyz->data() : xyz.data(), offset.data(),
                                            new_offset ? new_offset->data() : nullptr, xyz.dim(0), offset.dim(0), lists,
                                            idx.data(), dist.data()});
}

POLYOP_CUDA_KERNELS(KnnQuery, KnnQueryCuda, (int32_t, int32_t, int32_t), (int32_t, int32_t, int64_t),
                    (int32_t, int64_t, int32_t), (int32_t, int64_t, int64_t), (int64_t, int32_t, int32_t),
                    (int64_t, int32_t, int64_t), (int64_t, int64_t, int32_t), (int64_t, int64_t, int64_t));

}  // namespace
}  // namespace polyop

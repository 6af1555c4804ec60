// SPDX-License-Identifier: Apache-2.0
#include "ops/points/ball_cuda.h"
#include "ops/points/grid_ball_query/grid_ball_query.h"

namespace polyop {
namespace {

template <class T>
struct Search {
  using State = BallState;

  const T* queries;
  BatchRanges batches;
  BallRule rule;
  int64_t samples;
  int32_t *count, *idx;

  POLYOP_HD PointRange Start(int64_t q, State& state) const {
    const PointRange range = batches.Of(q);
    state.Start(rule, queries + 3 * q, range.begin);
    state.found = idx + q * samples;
    return range;
  }
  POLYOP_HD void Offer(State& state, const float* point, int64_t row) const { state.Offer(rule, point, row, samples); }
  POLYOP_HD void Finish(State& state, int64_t q) const {
    for (int64_t k = state.count; k < samples; ++k) state.found[k] = state.count > 0 ? state.found[k - state.count] : 0;
    count[q] = static_cast<int32_t>(state.count);
  }
};

template <class T>
Status GridBallQueryCuda(const GridBallQuery& op, const CudaContext& cuda, Tensor<const T, 3> xyz,
                         Tensor<const T, 3> query, Tensor<int32_t, 2> count, Tensor<int32_t, 3> idx) {
  return ForTiles(
      cuda, xyz.data(), xyz.dim(0) * xyz.dim(1), query.dim(0) * query.dim(1),
      Search<T>{query.data(), BatchRanges(xyz.dim(1), query.dim(1)), op.Rule(), op.nsample, count.data(), idx.data()});
}

POLYOP_CUDA_KERNELS(GridBallQuery, GridBallQueryCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

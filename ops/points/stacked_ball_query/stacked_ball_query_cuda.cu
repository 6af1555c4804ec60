// SPDX-License-Identifier: Apache-2.0
#include "ops/points/ball_cuda.h"
#include "ops/points/stacked_ball_query/stacked_ball_query.h"

namespace polyop {
namespace {

// Consecutive clouds. A negative count, which is an error on the CPU, counts as 0, and clouds are clamped to the
// points.
template <class I>
struct Stack {
  const I *counts, *query_counts;
  int64_t points, queries, clouds;

  POLYOP_HD static int64_t EndOf(const I* counts, int64_t cloud, int64_t begin, int64_t total) {
    const int64_t count = counts[cloud];
    return count < 0 ? begin : count > total - begin ? total : begin + count;
  }
  POLYOP_HD PointRange Of(int64_t q) const {
    int64_t begin = 0, query_end = 0;
    for (int64_t s = 0; s < clouds; ++s) {  // the cloud that contains query q
      const int64_t end = EndOf(counts, s, begin, points);
      query_end = EndOf(query_counts, s, query_end, queries);
      if (q < query_end) return {begin, end};
      begin = end;
    }
    return {0, 0};
  }
};

template <class T, class I>
Status StackedBallQueryCuda(const StackedBallQuery& op, const CudaContext& cuda, Tensor<const T, 2> xyz,
                            Tensor<const I, 1> counts, Tensor<const T, 2> centres, Tensor<const I, 1> centre_counts,
                            Tensor<int32_t, 2> idx) {
  const Stack<I> stack = {counts.data(), centre_counts.data(), xyz.dim(0), centres.dim(0), counts.dim(0)};
  const RepeatingFirstSearch<T, Stack<I>> search = {centres.data(), stack, op.Rule(), op.sample_num, -1, idx.data()};
  return ForTiles(cuda, xyz.data(), xyz.dim(0), centres.dim(0), search);
}

POLYOP_CUDA_KERNELS(StackedBallQuery, StackedBallQueryCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop

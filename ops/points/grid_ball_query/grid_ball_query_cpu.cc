// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/grid_ball_query/grid_ball_query_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/points/ball_search-inl.h"
#include "ops/points/cloud_batches-inl.h"
#include "ops/points/grid_ball_query/grid_ball_query.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status GridBallQueryCpu(const GridBallQuery& op, const Context& context, Tensor<const T, 3> xyz,
                        Tensor<const T, 3> query, Tensor<int32_t, 2> count, Tensor<int32_t, 3> idx) {
  const int64_t points = xyz.dim(1), samples = op.nsample;
  const CloudBatches<T> batches(context, xyz, query);
  QueriesOfPoints call;
  POLYOP_RETURN_IF_ERROR(batches.Read(&call));
  const auto emit = [&](int64_t q, int64_t batch, const int32_t* inside, int64_t found) {
    int32_t* const to = idx.data() + q * samples;
    for (int64_t k = 0; k < found; ++k) to[k] = static_cast<int32_t>(inside[k] - batch * points);
    for (int64_t k = found; k < samples; ++k) to[k] = found > 0 ? to[k - found] : 0;
    count[q] = static_cast<int32_t>(found);
  };
  return ForBalls(context, call, op.Rule(), samples, emit);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(GridBallQuery, GridBallQueryCpu, float, Half, BFloat16);
}  // namespace polyop
#endif

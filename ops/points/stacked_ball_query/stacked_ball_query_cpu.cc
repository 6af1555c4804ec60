// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/stacked_ball_query/stacked_ball_query_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/points/ball_search-inl.h"
#include "ops/points/segments.h"
#include "ops/points/stacked_ball_query/stacked_ball_query.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Types, class T = typename Types::Real, class I = typename Types::Int>
Status StackedBallQueryCpu(const StackedBallQuery& op, const Context& context, Tensor<const T, 2> xyz,
                           Tensor<const I, 1> counts, Tensor<const T, 2> centres, Tensor<const I, 1> centre_counts,
                           Tensor<int32_t, 2> idx) {
  const int64_t clouds = counts.dim(0);
  const Scratch<int64_t> ends = context.Allocate<int64_t>(clouds), query_ends = context.Allocate<int64_t>(clouds);
  constexpr bool kWidens = !std::is_same_v<T, float>;
  const Scratch<float> points = context.Allocate<float>(kWidens ? xyz.size() : 0);
  const Scratch<float> queries = context.Allocate<float>(kWidens ? centres.size() : 0);
  if (!ends || !query_ends || !points || !queries) return Internal("out of memory: ", xyz.dim(0), " points");
  POLYOP_RETURN_IF_ERROR(EndsOfCounts("xyz_batch_cnt", counts, "N", xyz.dim(0), ends.data()));
  POLYOP_RETURN_IF_ERROR(EndsOfCounts("center_xyz_batch_cnt", centre_counts, "M", centres.dim(0), query_ends.data()));
  const QueriesOfPoints call = {AsFloats(xyz.data(), xyz.size(), points.data()),
                                AsFloats(centres.data(), centres.size(), queries.data()), ends.data(),
                                query_ends.data(), clouds};
  return RepeatingFirst(context, call, op.Rule(), op.sample_num, -1, idx.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(StackedBallQuery, StackedBallQueryCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif

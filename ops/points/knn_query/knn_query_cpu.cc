// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/knn_query/knn_query_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/points/knn_query/knn_query.h"
#include "ops/points/nearest_of_queries-inl.h"
#include "ops/points/segments.h"

#ifndef POLYOP_OPS_KNN_QUERY_ONCE_
#define POLYOP_OPS_KNN_QUERY_ONCE_
namespace polyop {
namespace {

constexpr float kNoDistance = 1e5f;  // the distance of a missing neighbour, as in pointops

template <int kIsWide>
using IntOf = std::conditional_t<kIsWide != 0, int64_t, int32_t>;

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_KNN_QUERY_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// kWide: bit 2 is set if nsample is i64, bit 1 for offset, bit 0 for new_offset; otherwise they are i32.
template <int kWide>
Status KnnQueryCpu(const KnnQuery&, const Context& context, Tensor<const IntOf<kWide & 4>, 0>,
                   Tensor<const float, 2> xyz, Tensor<const IntOf<kWide & 2>, 1> offset,
                   std::optional<Tensor<const float, 2>> new_xyz,
                   std::optional<Tensor<const IntOf<kWide & 1>, 1>> new_offset, Tensor<int32_t, 2> idx,
                   Tensor<float, 2> dist) {
  const int64_t points = xyz.dim(0), queries = idx.dim(0), samples = idx.dim(1), segments = offset.dim(0);
  const Scratch<int64_t> ends = context.Allocate<int64_t>(segments), query_ends = context.Allocate<int64_t>(segments);
  if (!ends || !query_ends) return Internal("out of memory: ", segments, " segments");
  POLYOP_RETURN_IF_ERROR(ReadEnds("offset", offset, "n", points, ends.data()));
  if (new_offset) POLYOP_RETURN_IF_ERROR(ReadEnds("new_offset", *new_offset, "m", queries, query_ends.data()));
  const QueriesOfPoints call = {xyz.data(), new_xyz ? new_xyz->data() : xyz.data(), ends.data(),
                                new_offset ? query_ends.data() : ends.data(), segments};
  return ForNearest(context, call, samples, [&](int64_t q, int64_t, const Neighbour* nearest, int64_t found) {
    int32_t* const to_idx = idx.data() + q * samples;
    float* const to_dist = dist.data() + q * samples;
    for (int64_t k = 0; k < found; ++k) {
      to_idx[k] = nearest[k].index;
      to_dist[k] = static_cast<float>(std::sqrt(nearest[k].squared));
    }
    std::fill(to_idx + found, to_idx + samples, -1);
    std::fill(to_dist + found, to_dist + samples, kNoDistance);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(KnnQuery, KnnQueryCpu, 0, 1, 2, 3, 4, 5, 6, 7);
}  // namespace polyop
#endif

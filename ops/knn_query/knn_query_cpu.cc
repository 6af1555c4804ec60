#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/knn_query/knn_query_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/points/nearest_search-inl.h"
#include "families/points/point_tree-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/knn_query/knn_query.h"
#include "ops/knn_query/knn_query_values.h"

#ifndef POLYOP_OPS_KNN_QUERY_ONCE_
#define POLYOP_OPS_KNN_QUERY_ONCE_
namespace polyop {
namespace {

constexpr float kNoDistance = 1e5f;  // where there is no neighbour, as in pointops

template <int kIsWide>
using IntOf = std::conditional_t<kIsWide != 0, int64_t, int32_t>;

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_KNN_QUERY_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// One call, with all integers widened.
struct Call {
  const float* xyz;
  const float* queries;
  int64_t num_points, num_queries, samples, num_segments;
  const int64_t* ends;        // of segments
  const int64_t* query_ends;  // of segments' queries
  int32_t* idx;
  float* dist;
};

Status FindNeighbours(const Context& context, const Call& call) {
  const Scratch<TreeSegment> segments = context.Allocate<TreeSegment>(call.num_segments);
  if (!segments) return Internal("out of memory: ", call.num_segments, " segments");
  const TreeSizes sizes = PlanTrees(call.ends, call.num_segments, segments.data());
  if (!sizes.Fit()) {
    return InvalidArgument("'offset' has ", call.num_segments, " segments of ", call.num_points,
                           " points, wanted fewer: their numbers do not fit in 31 bits");
  }
  const Scratch<TreeLeaf> leaves = context.Allocate<TreeLeaf>(sizes.leaves);
  const Scratch<TreeBoxes> blocks = context.Allocate<TreeBoxes>(sizes.boxes);
  const int64_t wanted = std::max<int64_t>(1, std::min(call.samples, sizes.longest_segment));
  const int64_t grain = GrainFor(500.0 + 30.0 * static_cast<double>(wanted));
  const int64_t tasks = Context::NumTasks(call.num_queries, grain);
  const int64_t capacity = (NearestSearch::Capacity(wanted) + kLeafSize + 15) / 16 * 16;
  const Scratch<float> squared = context.Allocate<float>(tasks * capacity);
  const Scratch<int32_t> slots = context.Allocate<int32_t>(tasks * capacity);
  const Scratch<int32_t> ranks = context.Allocate<int32_t>(tasks * capacity);
  const Scratch<Neighbour> exact = context.Allocate<Neighbour>(tasks * capacity);
  if (!leaves || !blocks || !squared || !slots || !ranks || !exact) {
    return Internal("out of memory: a tree of ", call.num_points, " points");
  }
  POLYOP_RETURN_IF_ERROR(
      TreeBuilder(context, leaves.data(), blocks.data(), segments.data(), call.num_segments, call.num_points)
          .Run(call.xyz));

  context.ParallelFor(call.num_queries, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    const int64_t at = task * capacity;
    const Candidates candidates = {squared.data() + at, slots.data() + at, ranks.data() + at, exact.data() + at};
    NearestSearch search(leaves.data(), blocks.data(), candidates, wanted);
    int64_t s = std::upper_bound(call.query_ends, call.query_ends + call.num_segments, begin) - call.query_ends;
    for (int64_t q = begin; q < end; ++q) {
      while (q >= call.query_ends[s]) ++s;
      const int64_t found = search.Run(call.queries + q * 3, segments[s]);
      int32_t* idx = call.idx + q * call.samples;
      float* dist = call.dist + q * call.samples;
      for (int64_t k = 0; k < found; ++k) {
        idx[k] = candidates.exact[k].index;
        dist[k] = static_cast<float>(std::sqrt(candidates.exact[k].squared));
      }
      std::fill(idx + found, idx + call.samples, -1);
      std::fill(dist + found, dist + call.samples, kNoDistance);
    }
  });
  return Status::Ok();
}

// kWide: bit 2 tells that nsample is i64, bit 1 offset, bit 0 new_offset; else they are i32.
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
  return FindNeighbours(
      context, {xyz.data(), new_xyz ? new_xyz->data() : xyz.data(), points, queries, samples, segments, ends.data(),
                new_offset ? query_ends.data() : ends.data(), idx.data(), dist.data()});
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery444, KnnQueryCpu<0>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery448, KnnQueryCpu<1>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery484, KnnQueryCpu<2>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery488, KnnQueryCpu<3>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery844, KnnQueryCpu<4>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery848, KnnQueryCpu<5>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery884, KnnQueryCpu<6>);
POLYOP_CPU_KERNEL(KnnQuery, KnnQuery888, KnnQueryCpu<7>);
}  // namespace polyop
#endif

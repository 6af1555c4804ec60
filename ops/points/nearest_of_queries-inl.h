// SPDX-License-Identifier: Apache-2.0
// Finds the nearest points of many queries, each within the query's segment. Compiled once per instruction set; include
// it from a kernel file.

// Outside of the guard because Highway redefines its macros for each target.
#include "kernels/cpu/simd.h"
#include "ops/points/nearest_search-inl.h"
#include "ops/points/point_forest-inl.h"

#if defined(POLYOP_OPS_POINTS_NEAREST_OF_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_POINTS_NEAREST_OF_QUERIES_INL_H_
#undef POLYOP_OPS_POINTS_NEAREST_OF_QUERIES_INL_H_
#else
#define POLYOP_OPS_POINTS_NEAREST_OF_QUERIES_INL_H_
#endif

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Rows (x, y, z) of points and of queries. Segment s has rows [ends[s - 1], ends[s]).
struct QueriesOfPoints {
  const float* xyz;
  const float* queries;
  const int64_t* ends;
  const int64_t* query_ends;
  int64_t num_segments;

  int64_t NumPoints() const { return num_segments == 0 ? 0 : ends[num_segments - 1]; }
  int64_t NumQueries() const { return num_segments == 0 ? 0 : query_ends[num_segments - 1]; }
  /// Returns the segment of a query.
  int64_t SegmentOf(int64_t query) const {
    return std::upper_bound(query_ends, query_ends + num_segments, query) - query_ends;
  }
};

/// Calls emit(query, segment, neighbours, count) for every query with its `k` nearest points, or all if there are
/// fewer, in order.
template <class Emit>
Status ForNearest(const Context& context, const QueriesOfPoints& call, int64_t k, const Emit& emit) {
  const PointForest forest(context, call.ends, call.num_segments);
  POLYOP_RETURN_IF_ERROR(forest.Build(call.xyz));
  const int64_t kept = std::max<int64_t>(1, std::min(k, forest.sizes().longest_segment));
  const int64_t queries = call.NumQueries(), grain = GrainFor(500.0 + 30.0 * static_cast<double>(kept));
  const int64_t tasks = Context::NumTasks(queries, grain);
  const int64_t capacity = (NearestSearch::Capacity(kept) + kLeafSize + 15) / 16 * 16;
  const Scratch<float> squared = context.Allocate<float>(tasks * capacity);
  const Scratch<int32_t> slots = context.Allocate<int32_t>(tasks * capacity);
  const Scratch<int32_t> ranks = context.Allocate<int32_t>(tasks * capacity);
  const Scratch<Neighbour> exact = context.Allocate<Neighbour>(tasks * capacity);
  if (!squared || !slots || !ranks || !exact) return Internal("out of memory: ", kept, " neighbours");

  context.ParallelFor(queries, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    const int64_t at = task * capacity;
    const Candidates candidates = {squared.data() + at, slots.data() + at, ranks.data() + at, exact.data() + at};
    NearestSearch search(forest.leaves(), forest.blocks(), candidates, kept);
    int64_t s = call.SegmentOf(begin);
    for (int64_t q = begin; q < end; ++q) {
      while (q >= call.query_ends[s]) ++s;
      const int64_t found = search.Run(call.queries + q * 3, forest.segment(s));
      emit(q, s, candidates.exact, std::min(found, k));
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part

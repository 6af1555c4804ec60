#include "families/points/ball_reference.h"
#include "ops/stacked_ball_query/stacked_ball_query.h"

namespace polyop {
namespace {

template <class I>
Status StackedBallQueryReference(const StackedBallQuery& op, const Context&, Tensor<const double, 2> xyz,
                                 Tensor<const I, 1> counts, Tensor<const double, 2> centres,
                                 Tensor<const I, 1> centre_counts, Tensor<int32_t, 2> idx) {
  int64_t point = 0, query = 0;
  for (int64_t b = 0; b < counts.dim(0); ++b) {
    if (counts[b] < 0 || centre_counts[b] < 0 || counts[b] > xyz.dim(0) - point ||
        centre_counts[b] > centres.dim(0) - query) {
      return InvalidArgument("cloud ", b, " has ", int64_t{counts[b]}, " points and ", int64_t{centre_counts[b]},
                             " centres");
    }
    for (int64_t i = 0; i < centre_counts[b]; ++i, ++query) {
      FindInBall(xyz.data() + 3 * point, counts[b], centres.data() + 3 * query, op.min_radius, op.max_radius,
                 op.sample_num, -1, idx.data() + query * op.sample_num);
    }
    point += counts[b];
  }
  if (point == xyz.dim(0) && query == centres.dim(0)) return Status::Ok();
  return InvalidArgument("clouds have ", point, " points and ", query, " centres in all");
}
POLYOP_REFERENCE_KERNEL(StackedBallQuery, StackedBallQueryI32, StackedBallQueryReference<int32_t>);
POLYOP_REFERENCE_KERNEL(StackedBallQuery, StackedBallQueryI64, StackedBallQueryReference<int64_t>);

}  // namespace
}  // namespace polyop

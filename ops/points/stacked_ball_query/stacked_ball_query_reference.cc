// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/points/ball_reference.h"
#include "ops/points/segments.h"
#include "ops/points/stacked_ball_query/stacked_ball_query.h"

namespace polyop {
namespace {

template <class I>
Status StackedBallQueryReference(const StackedBallQuery& op, const Context&, Tensor<const double, 2> xyz,
                                 Tensor<const I, 1> counts, Tensor<const double, 2> centres,
                                 Tensor<const I, 1> centre_counts, Tensor<int32_t, 2> idx) {
  std::vector<int64_t> ends(static_cast<size_t>(counts.dim(0)));
  POLYOP_RETURN_IF_ERROR(EndsOfCounts("xyz_batch_cnt", counts, "N", xyz.dim(0), ends.data()));
  POLYOP_RETURN_IF_ERROR(EndsOfCounts("center_xyz_batch_cnt", centre_counts, "M", centres.dim(0), ends.data()));
  int64_t point = 0, query = 0;
  for (int64_t b = 0; b < counts.dim(0); ++b) {
    for (int64_t i = 0; i < centre_counts[b]; ++i, ++query) {
      FindInBall(xyz.data() + 3 * point, counts[b], centres.data() + 3 * query, op.min_radius, op.max_radius,
                 op.sample_num, -1, idx.data() + query * op.sample_num);
    }
    point += counts[b];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(StackedBallQuery, StackedBallQueryReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop

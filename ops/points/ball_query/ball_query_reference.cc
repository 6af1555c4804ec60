// SPDX-License-Identifier: Apache-2.0
#include "ops/points/ball_query/ball_query.h"
#include "ops/points/ball_reference.h"

namespace polyop {
namespace {

Status BallQueryReference(const BallQuery& op, const Context&, Tensor<const double, 3> xyz,
                          Tensor<const double, 3> centres, Tensor<int32_t, 3> idx) {
  const int64_t points = xyz.dim(1), queries = centres.dim(1);
  for (int64_t q = 0; q < xyz.dim(0) * queries; ++q) {
    FindInBall(xyz.data() + q / queries * points * 3, points, centres.data() + 3 * q, op.min_radius, op.max_radius,
               op.sample_num, 0, idx.data() + q * op.sample_num);
  }
  return Status::Ok();
}

POLYOP_REFERENCE_KERNEL(BallQuery, BallQueryReference);

}  // namespace
}  // namespace polyop

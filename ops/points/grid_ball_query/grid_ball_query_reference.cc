// SPDX-License-Identifier: Apache-2.0
#include "ops/points/grid_ball_query/grid_ball_query.h"

namespace polyop {
namespace {

Status GridBallQueryReference(const GridBallQuery& op, const Context&, Tensor<const double, 3> xyz,
                              Tensor<const double, 3> query, Tensor<int32_t, 2> count, Tensor<int32_t, 3> idx) {
  const int64_t points = xyz.dim(1), queries = query.dim(1);
  const double limit = static_cast<double>(op.radius) * static_cast<double>(op.radius);
  for (int64_t q = 0; q < query.dim(0) * queries; ++q) {
    int32_t* const indices = idx.data() + q * op.nsample;
    int32_t found = 0;
    for (int64_t n = 0; n < points; ++n) {
      const double* point = xyz.data() + (q / queries * points + n) * 3;
      const double x = point[0] - query[3 * q], y = point[1] - query[3 * q + 1], z = point[2] - query[3 * q + 2];
      if (!((x * x + y * y) + z * z < limit) || found == op.nsample) continue;
      indices[found++] = static_cast<int32_t>(n);
    }
    count[q] = found;
    for (int64_t k = found; k < op.nsample; ++k) indices[k] = found == 0 ? 0 : indices[k % found];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(GridBallQuery, GridBallQueryReference);

}  // namespace
}  // namespace polyop

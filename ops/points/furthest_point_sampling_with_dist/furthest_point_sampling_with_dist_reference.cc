// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/points/furthest_point_sampling_with_dist/furthest_point_sampling_with_dist.h"

namespace polyop {
namespace {

Status FurthestPointSamplingWithDistReference(const FurthestPointSamplingWithDist& op, const Context&,
                                              Tensor<const double, 3> dist, Tensor<int32_t, 2> idx) {
  const int64_t points = dist.dim(1);
  for (int64_t b = 0; b < dist.dim(0); ++b) {
    int32_t* chosen = idx.data() + b * op.num_points;
    chosen[0] = 0;
    for (int64_t k = 1; k < op.num_points; ++k) {
      double greatest = -INFINITY;
      chosen[k] = -1;
      for (int64_t i = 0; i < points; ++i) {
        double nearest = INFINITY;
        for (int64_t j = 0; j < k; ++j) nearest = std::fmin(nearest, dist[(b * points + chosen[j]) * points + i]);
        if (chosen[k] >= 0 && !(nearest > greatest)) continue;
        greatest = nearest;
        chosen[k] = static_cast<int32_t>(i);
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(FurthestPointSamplingWithDist, FurthestPointSamplingWithDistReference);

}  // namespace
}  // namespace polyop

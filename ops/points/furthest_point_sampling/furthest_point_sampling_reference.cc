// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/points/furthest_point_sampling/furthest_point_sampling.h"

namespace polyop {
namespace {

// Distances are fp32 by definition; volatile keeps wider and fused arithmetic away.
float Squared(const double* a, const double* b) {
  volatile float sum = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const volatile float d = static_cast<float>(a[axis]) - static_cast<float>(b[axis]);
    const volatile float square = d * d;
    sum = sum + square;
  }
  return sum;
}

bool IsFinite(const double* p) {
  return std::isfinite(static_cast<float>(p[0])) && std::isfinite(static_cast<float>(p[1])) &&
         std::isfinite(static_cast<float>(p[2]));
}

Status FurthestPointSamplingReference(const FurthestPointSampling& op, const Context&, Tensor<const double, 3> xyz,
                                      Tensor<int32_t, 2> idx) {
  const int64_t points = xyz.dim(1);
  for (int64_t b = 0; b < xyz.dim(0); ++b) {
    const double* cloud = xyz.data() + b * points * 3;
    std::vector<int64_t> chosen = {0};
    std::vector<float> nearest(static_cast<size_t>(points), INFINITY);
    while (static_cast<int64_t>(chosen.size()) < op.num_points) {
      int64_t farthest = -1;
      for (int64_t i = 0; i < points; ++i) {
        float& distance = nearest[static_cast<size_t>(i)];
        if (!IsFinite(cloud + 3 * i)) continue;
        if (IsFinite(cloud + 3 * chosen.back())) {
          distance = std::fmin(distance, Squared(cloud + 3 * i, cloud + 3 * chosen.back()));
        }
        if (farthest < 0 || distance > nearest[static_cast<size_t>(farthest)]) farthest = i;
      }
      chosen.push_back(farthest < 0 ? 0 : farthest);
    }
    for (int64_t k = 0; k < op.num_points; ++k) {
      idx[b * op.num_points + k] = static_cast<int32_t>(chosen[static_cast<size_t>(k)]);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(FurthestPointSampling, FurthestPointSamplingReference);

}  // namespace
}  // namespace polyop

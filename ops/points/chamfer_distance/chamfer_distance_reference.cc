// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/points/chamfer_distance/chamfer_distance.h"

namespace polyop {
namespace {

void Nearest(Tensor<const double, 3> from, Tensor<const double, 3> to, Tensor<double, 2> dist, Tensor<int32_t, 2> idx) {
  const int64_t coordinates = from.dim(2);
  for (int64_t i = 0; i < dist.size(); ++i) {
    dist[i] = INFINITY;
    idx[i] = 0;
    for (int64_t k = 0; k < to.dim(1); ++k) {
      const double* const other = to.data() + (i / from.dim(1) * to.dim(1) + k) * coordinates;
      double squared = 0;
      for (int64_t a = 0; a < coordinates; ++a) {
        const double difference = from[i * coordinates + a] - other[a];
        squared += difference * difference;
      }
      if (!(squared < dist[i])) continue;
      dist[i] = squared;
      idx[i] = static_cast<int32_t>(k);
    }
  }
}

Status ChamferDistanceReference(const ChamferDistance&, const Context&, Tensor<const double, 3> xyz1,
                                Tensor<const double, 3> xyz2, Tensor<double, 2> dist1, Tensor<double, 2> dist2,
                                Tensor<int32_t, 2> idx1, Tensor<int32_t, 2> idx2) {
  Nearest(xyz1, xyz2, dist1, idx1);
  Nearest(xyz2, xyz1, dist2, idx2);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(ChamferDistance, ChamferDistanceReference);

}  // namespace
}  // namespace polyop

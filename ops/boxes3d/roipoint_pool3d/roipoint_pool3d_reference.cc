// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/boxes3d/box3d_reference.h"
#include "ops/boxes3d/roipoint_pool3d/roipoint_pool3d.h"

namespace polyop {
namespace {

Status RoipointPool3dReference(const RoipointPool3d& op, const Context&, Tensor<const double, 3> points,
                               Tensor<const double, 3> features, Tensor<const double, 3> boxes,
                               Tensor<double, 4> pooled, Tensor<int32_t, 2> empty) {
  const int64_t count = points.dim(1), channels = features.dim(2);
  for (int64_t i = 0; i < boxes.dim(0) * boxes.dim(1); ++i) {
    const int64_t first = i / boxes.dim(1) * count;
    std::vector<int64_t> inside;
    for (int64_t p = first; p < first + count; ++p) {
      if (IsInBox(points.data() + 3 * p, boxes.data() + 7 * i)) inside.push_back(p);
    }
    empty[i] = inside.empty() ? 1 : 0;
    for (int64_t k = 0; k < op.num_sampled_points; ++k) {
      double* const to = pooled.data() + (i * op.num_sampled_points + k) * (3 + channels);
      for (int64_t c = 0; c < 3 + channels; ++c) {
        if (inside.empty()) {
          to[c] = 0;
          continue;
        }
        const int64_t p = inside[static_cast<size_t>(k) % inside.size()];
        to[c] = c < 3 ? points[3 * p + c] : features[channels * p + c - 3];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RoipointPool3d, RoipointPool3dReference);

}  // namespace
}  // namespace polyop

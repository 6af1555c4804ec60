// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/voxels/dynamic_voxelize/dynamic_voxelize.h"

namespace polyop {
namespace {

// In fp32 and not in fp64: the cell depends on whether a quotient rounds up to an integer.
Status DynamicVoxelizeReference(const DynamicVoxelize& op, const Context&, Tensor<const float, 2> points,
                                Tensor<int32_t, 2> coors) {
  const int64_t columns = points.dim(1);
  for (int64_t i = 0; i < points.dim(0); ++i) {
    bool inside = true;
    for (size_t a = 0; a < 3; ++a) {
      const float low = op.point_cloud_range[a], high = op.point_cloud_range[a + 3], size = op.voxel_size[a];
      const float cell = std::floor((points[i * columns + static_cast<int64_t>(a)] - low) / size);
      inside = inside && cell >= 0 && static_cast<double>(cell) < std::round((high - low) / size);
      if (inside) coors[3 * i + 2 - static_cast<int64_t>(a)] = static_cast<int32_t>(cell);
    }
    for (int64_t a = 0; a < 3 && !inside; ++a) coors[3 * i + a] = -1;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DynamicVoxelize, DynamicVoxelizeReference);

}  // namespace
}  // namespace polyop

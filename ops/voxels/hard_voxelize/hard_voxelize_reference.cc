// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "ops/voxels/hard_voxelize/hard_voxelize.h"

namespace polyop {
namespace {

struct Voxel {
  std::array<int32_t, 3> cell;  // z, y, x
  std::vector<int64_t> points;
};

// Computes in fp32, not in double, because the rounding of a quotient decides the cell.
std::vector<Voxel> VoxelsOf(const HardVoxelize& op, const float* points, int64_t count, int64_t columns) {
  std::vector<Voxel> voxels;
  std::map<std::array<int32_t, 3>, size_t> open;
  for (int64_t i = 0; i < count; ++i) {
    std::array<int32_t, 3> cell{};
    bool inside = true;
    for (size_t a = 0; a < 3; ++a) {
      const float low = op.point_cloud_range[a], high = op.point_cloud_range[a + 3], size = op.voxel_size[a];
      const float at = std::floor((points[i * columns + static_cast<int64_t>(a)] - low) / size);
      inside = inside && at >= 0 && static_cast<double>(at) < std::round((high - low) / size);
      if (inside) cell[2 - a] = static_cast<int32_t>(at);
    }
    if (!inside) continue;
    if (!open.contains(cell)) {
      if (static_cast<int64_t>(voxels.size()) == op.max_voxels) continue;
      open[cell] = voxels.size();
      voxels.push_back({cell, {}});
    }
    std::vector<int64_t>& members = voxels[open[cell]].points;
    if (static_cast<int64_t>(members.size()) < op.max_num_points) members.push_back(i);
  }
  return voxels;
}

void Write(const std::vector<Voxel>& found, const float* points, int64_t columns, int64_t row, float* voxels,
           int32_t* coors, int32_t* num_points) {
  for (const Voxel& voxel : found) {
    for (size_t k = 0; k < voxel.points.size(); ++k) {
      std::copy_n(points + voxel.points[k] * columns, columns, voxels + static_cast<int64_t>(k) * columns);
    }
    std::fill(voxels + static_cast<int64_t>(voxel.points.size()) * columns, voxels + row, 0.0f);
    voxels += row;
    coors = std::copy(voxel.cell.begin(), voxel.cell.end(), coors);
    *num_points++ = static_cast<int32_t>(voxel.points.size());
  }
}

Status HardVoxelizeCloudReference(const HardVoxelize& op, const Context&, Tensor<const float, 2> points,
                                  Pending<float, 3> voxels, Pending<int32_t, 2> coors, Pending<int32_t, 1> num_points,
                                  std::optional<Tensor<int32_t, 1>> voxel_num) {
  const std::vector<Voxel> found = VoxelsOf(op, points.data(), points.dim(0), points.dim(1));
  const auto count = static_cast<int64_t>(found.size());
  Tensor<float, 3> voxel_data;
  Tensor<int32_t, 2> at;
  Tensor<int32_t, 1> sizes;
  POLYOP_RETURN_IF_ERROR(voxels.Allocate(count, &voxel_data));
  POLYOP_RETURN_IF_ERROR(coors.Allocate(count, &at));
  POLYOP_RETURN_IF_ERROR(num_points.Allocate(count, &sizes));
  if (voxel_num) (*voxel_num)[0] = static_cast<int32_t>(count);
  Write(found, points.data(), points.dim(1), op.max_num_points * points.dim(1), voxel_data.data(), at.data(),
        sizes.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(HardVoxelize, HardVoxelizeCloudReference);

Status HardVoxelizeCloudsReference(const HardVoxelize& op, const Context&, Tensor<const float, 3> points,
                                   Tensor<float, 4> voxels, Tensor<int32_t, 3> coors, Tensor<int32_t, 2> num_points,
                                   std::optional<Tensor<int32_t, 1>> voxel_num) {
  const int64_t count = points.dim(1), columns = points.dim(2), row = op.max_num_points * columns;
  std::fill_n(voxels.data(), voxels.size(), 0.0f);
  std::fill_n(coors.data(), coors.size(), -1);
  std::fill_n(num_points.data(), num_points.size(), 0);
  for (int64_t b = 0; b < points.dim(0); ++b) {
    const float* const from = points.data() + b * count * columns;
    const std::vector<Voxel> found = VoxelsOf(op, from, count, columns);
    if (voxel_num) (*voxel_num)[b] = static_cast<int32_t>(found.size());
    const int64_t first = b * op.max_voxels;
    Write(found, from, columns, row, voxels.data() + first * row, coors.data() + first * 3, num_points.data() + first);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(HardVoxelize, HardVoxelizeCloudsReference);

}  // namespace
}  // namespace polyop

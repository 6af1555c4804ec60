// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/voxels/voxel_generator/voxel_generator.h"
#include "ops/voxels/voxel_generator/voxel_generator_values.h"

namespace polyop {
namespace {

struct FoundPillar {
  float x, y;  // indices of the cell
  std::vector<const float*> points;
};

// Computes in fp32, not in double, because the rounding of a quotient decides the cell.
std::vector<FoundPillar> PillarsOf(const VoxelGenerator& op, const float* points, int64_t count, int64_t components) {
  std::vector<FoundPillar> pillars;
  for (const float* p = points; p < points + count * components; p += components) {
    float cell[2];
    bool inside = true;
    for (size_t a = 0; a < 3; ++a) {
      const float low = op.point_cloud_range[a], high = op.point_cloud_range[a + 3];
      inside = inside && p[a] >= low && p[a] < high;
      if (a == 2) continue;
      cell[a] = std::floor((p[a] - low) / op.voxel_size[a]);
      inside = inside && cell[a] < std::nearbyint((high - low) / op.voxel_size[a]);
    }
    if (!inside) continue;
    auto at = std::find_if(pillars.begin(), pillars.end(),
                           [&](const FoundPillar& f) { return f.x == cell[0] && f.y == cell[1]; });
    if (at == pillars.end()) {
      if (static_cast<int64_t>(pillars.size()) == op.max_voxels) continue;
      pillars.push_back({cell[0], cell[1], {}});
      at = pillars.end() - 1;
    }
    if (static_cast<int64_t>(at->points.size()) < op.max_num_points_per_voxel) at->points.push_back(p);
  }
  return pillars;
}

template <class I>
Status VoxelGeneratorReference(const VoxelGenerator& op, const Context&, Tensor<const float, 3> points,
                               Tensor<const I, 1> num_points, Tensor<float, 4> voxels, Tensor<int32_t, 3> coords,
                               Tensor<int32_t, 1> num_pillar) {
  const int64_t components = points.dim(2), features = op.voxel_feature_num;
  POLYOP_RETURN_IF_ERROR(CheckNumPoints(num_points, points.dim(1)));
  std::fill_n(voxels.data(), voxels.size(), 0.0f);
  std::fill_n(coords.data(), coords.size(), 0);
  for (int64_t n = 0; n < points.dim(0); ++n) {
    const std::vector<FoundPillar> pillars =
        PillarsOf(op, points.data() + n * points.dim(1) * components, num_points[n], components);
    num_pillar[n] = static_cast<int32_t>(pillars.size());
    int64_t v = n * op.max_voxels;
    for (const FoundPillar& pillar : pillars) {
      coords[4 * v + 2] = static_cast<int32_t>(pillar.y);
      coords[4 * v + 3] = static_cast<int32_t>(pillar.x);
      float* to = voxels.data() + v++ * op.max_num_points_per_voxel * features;
      for (const float* p : pillar.points) {
        std::copy_n(p, components, to);
        for (int64_t a = 0; a < 3; ++a) {
          double sum = 0;
          for (const float* other : pillar.points) sum += static_cast<double>(other[a]);
          const double mean = sum / static_cast<double>(pillar.points.size());
          to[components + a] = static_cast<float>(static_cast<double>(p[a]) - mean);
          if (components + 3 + a == features) break;
          const double cell = a == 0 ? static_cast<double>(pillar.x) : a == 1 ? static_cast<double>(pillar.y) : 0;
          const double low = op.point_cloud_range[static_cast<size_t>(a)], size = op.voxel_size[static_cast<size_t>(a)];
          to[components + 3 + a] = static_cast<float>(static_cast<double>(p[a]) - (low + (cell + 0.5) * size));
        }
        to += features;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(VoxelGenerator, VoxelGeneratorReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop

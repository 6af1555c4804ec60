// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "ops/voxels/voxel_grid/voxel_grid.h"
#include "ops/voxels/voxel_grid/voxel_grid_values.h"

namespace polyop {
namespace {

// Computes in fp32, not in double, because the rounding of a quotient decides the voxel.
Status VoxelGridReference(const VoxelGrid&, const Context&, Tensor<const float, 2> pos, Tensor<const float, 1> size,
                          std::optional<Tensor<const float, 1>> start, std::optional<Tensor<const float, 1>> end,
                          Tensor<int64_t, 1> cluster) {
  const int64_t points = pos.dim(0), dims = pos.dim(1);
  std::vector<VoxelAxis> axes;
  std::vector<float> ends;
  for (int64_t d = 0; d < dims; ++d) {
    float low = INFINITY, high = -INFINITY;
    for (int64_t n = 0; n < points; ++n) {
      const float p = pos[n * dims + d];
      if (std::isfinite(p)) low = std::min(low, p), high = std::max(high, p);
    }
    if (start) low = (*start)[d];
    if (end) high = (*end)[d];
    if (!start && !end && low > high) low = high = 0;  // no finite coordinate
    if (!start) low = std::min(low, high);
    if (!end) high = std::max(low, high);
    axes.push_back({low, size[d], 0, 0});
    ends.push_back(high);
  }
  POLYOP_RETURN_IF_ERROR(CountVoxels(axes.data(), ends.data(), dims));

  for (int64_t n = 0; n < points; ++n) cluster[n] = 0;
  __int128 stride = 1;
  for (int64_t d = 0; d < dims; ++d) {
    const float low = axes[static_cast<size_t>(d)].start, high = ends[static_cast<size_t>(d)];
    for (int64_t n = 0; n < points; ++n) {
      if (cluster[n] == kNoVoxel) continue;
      const float p = pos[n * dims + d];
      const float quotient = (p - low) / size[d];
      if (!std::isfinite(p) || !(std::fabs(quotient) < 0x1p63f)) {
        cluster[n] = kNoVoxel;
        continue;
      }
      const __int128 sum = cluster[n] + stride * static_cast<int64_t>(quotient);
      const bool fits = sum > kNoVoxel && sum <= std::numeric_limits<int64_t>::max();
      cluster[n] = fits ? static_cast<int64_t>(sum) : kNoVoxel;
    }
    stride *= static_cast<int64_t>((high - low) / size[d]) + 1;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(VoxelGrid, VoxelGridReference);

}  // namespace
}  // namespace polyop

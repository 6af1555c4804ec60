// SPDX-License-Identifier: Apache-2.0
// The points in the cells of a box in double precision: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "ops/boxes3d/box3d_reference.h"
#include "ops/boxes3d/roiaware_pool3d/roiaware_pool3d.h"

namespace polyop::reference {

inline int64_t CellOfAxis(double from_side, double size, int64_t cells) {
  const double cell = std::trunc(from_side / (size / static_cast<double>(cells)));
  return std::isnan(cell) ? 0 : static_cast<int64_t>(std::clamp(cell, 0.0, static_cast<double>(cells - 1)));
}

/// Returns the indices of the points that each cell of a box pools; cells without points are absent.
inline std::map<int64_t, std::vector<int64_t>> PointsOfCells(const RoiawarePool3d& op, const double* box,
                                                             const Tensor<const double, 2>& points) {
  std::map<int64_t, std::vector<int64_t>> points_of;
  for (int64_t p = 0; p < points.dim(0) && op.max_pts_per_voxel > 1; ++p) {
    if (!IsInBox(points.data() + 3 * p, box)) continue;
    double position[3];
    ToBoxFrame(points.data() + 3 * p, box, position);
    int64_t cell = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const int64_t cells = op.out_size[static_cast<size_t>(axis)];
      const double from_side = axis < 2 ? position[axis] + box[3 + axis] / 2 : position[axis];
      cell = cell * cells + CellOfAxis(from_side, box[3 + axis], cells);
    }
    std::vector<int64_t>& cell_points = points_of[cell];
    if (static_cast<int64_t>(cell_points.size()) < op.max_pts_per_voxel - 1) cell_points.push_back(p);
  }
  return points_of;
}

}  // namespace polyop::reference

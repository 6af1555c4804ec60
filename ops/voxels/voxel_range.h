// SPDX-License-Identifier: Apache-2.0
// The attributes of operators that assign points to the voxels of a regular grid.
#pragma once

#include <array>
#include <span>

#include "ops/voxels/cell_grid.h"

namespace polyop {

/// The base of an operator's parameters; the operator lists these members among its attributes.
struct VoxelRange {
  std::array<float, 3> voxel_size{1, 1, 1};
  std::array<float, 6> point_cloud_range{-4, -4, -4, 4, 4, 4};

  CellGrid grid() const {
    CellGrid result{};
    (void)MakeCellGrid(voxel_size, point_cloud_range, HalfCells::kAwayFromZero, &result);  // Check() has verified it
    return result;
  }
  Status Check() const {
    CellGrid result{};
    return MakeCellGrid(voxel_size, point_cloud_range, HalfCells::kAwayFromZero, &result);
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckVoxelPoints(inputs[0]); }
};

}  // namespace polyop

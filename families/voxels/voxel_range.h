// The attributes of operators that put points into the voxels of a regular grid.
#pragma once

#include <array>
#include <span>

#include "families/voxels/cell_grid.h"

namespace polyop {

/// An operator inherits it, and lists its members among its attributes.
struct VoxelRange {
  std::array<float, 3> voxel_size{1, 1, 1};
  std::array<float, 6> point_cloud_range{-4, -4, -4, 4, 4, 4};

  CellGrid grid() const {
    CellGrid made{};
    (void)MakeCellGrid(voxel_size, point_cloud_range, HalfCells::kAwayFromZero, &made);  // Check() saw to it
    return made;
  }
  Status Check() const {
    CellGrid made{};
    return MakeCellGrid(voxel_size, point_cloud_range, HalfCells::kAwayFromZero, &made);
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckVoxelPoints(inputs[0]); }
};

}  // namespace polyop

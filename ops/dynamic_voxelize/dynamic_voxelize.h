#pragma once

#include "core/operator.h"
#include "families/voxels/voxel_range.h"

namespace polyop {

/// The cell of a regular grid that each point lies in, as coordinates.
struct DynamicVoxelize : VoxelRange {
  static constexpr const char* kName = "dynamic_voxelize";
  static constexpr Signature kSignature = "points: T[N, F] -> coors: i32[N, 3]";
  static constexpr NodeName kNodes[] = {"polyop::DynamicVoxelize"};
  static constexpr std::tuple kAttributes = {
      Attr("voxel_size", &DynamicVoxelize::voxel_size, "extents of a voxel along x, y and z").GreaterThan(0).Required(),
      Attr("point_cloud_range", &DynamicVoxelize::point_cloud_range,
           "the least x, y and z of the grid, and then the greatest")
          .Required()
          .Also("coors_range"),
  };
  static constexpr Doc kDoc = {
      .summary = "Gives each point the cell of a regular grid that it lies in.",
      .semantics =
          "A row of points is (x, y, z, features ...) in the unit of voxel_size, a row of coors (z, y, x). Along each "
          "axis the grid has round((max - min) / size) cells, halves away from zero; a point's cell is floor((p - min) "
          "/ size), all in fp32. A point outside of the grid, or with NaN or infinity among its coordinates, gets "
          "(-1, -1, -1).",
      .source = "Zhou et al., End-to-End Multi-View Fusion, 2019; `mmcv.ops.voxelization` with max_points = -1",
      .differences = "MMCV's kernel for GPUs leaves 0 in some of the coordinates of points outside.",
  };
};

}  // namespace polyop

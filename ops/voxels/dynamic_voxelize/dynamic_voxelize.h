// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/voxels/voxel_range.h"

namespace polyop {

/// Computes the coordinates of the grid cell of each point.
struct DynamicVoxelize : VoxelRange {
  static constexpr const char* kName = "dynamic_voxelize";
  static constexpr Signature kSignature = "points: T[N, F] -> coors: i32[N, 3]";
  static constexpr NodeName kNodes[] = {"polyop::DynamicVoxelize"};
  static constexpr std::tuple kAttributes = {
      Attr("voxel_size", &DynamicVoxelize::voxel_size, "extents of a voxel along x, y and z").GreaterThan(0).Required(),
      Attr("point_cloud_range", &DynamicVoxelize::point_cloud_range,
           "minimum x, y, z of the grid, followed by the maximum")
          .Required()
          .Also("coors_range"),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the cell of a regular grid for each point.",
      .semantics = R"(A row of `points` is (x, y, z, features ...) in the unit of `voxel_size`; a row of `coors` is (z,
          y, x). Along each axis, the grid has round((max - min) / size) cells, with halves rounded away from zero; the
          cell of a point is floor((p - min) / size), all in fp32. A point outside of the grid or with a NaN or infinite
          coordinate gets (-1, -1, -1).)",
      .source = "Zhou et al., End-to-End Multi-View Fusion, 2019; `mmcv.ops.voxelization` with max_points = -1",
      .differences = "MMCV's GPU kernel leaves 0 in some of the coordinates of points outside.",
  };
};

}  // namespace polyop

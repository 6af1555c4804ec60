// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/voxels/voxel_range.h"

namespace polyop {

/// Groups points into voxels, with a limited number of voxels and of points per voxel.
struct HardVoxelize : VoxelRange {
  int64_t max_num_points = 35;
  int64_t max_voxels = 20000;
  bool deterministic = true;
  bool return_voxel_num = false;

  static constexpr const char* kName = "hard_voxelize";
  static constexpr Signature kSignatures[] = {
      "points: T[N, F] -> voxels: T[V<=min(N, max_voxels), max_num_points, F], coors: i32[V, 3], num_points: i32[V], "
      "voxel_num?: i32[1]",
      // The shapes of this form do not depend on values, which suits TensorRT.
      "points: T[B, N, F] -> voxels: T[B, max_voxels, max_num_points, F], coors: i32[B, max_voxels, 3], "
      "num_points: i32[B, max_voxels], voxel_num?: i32[B]",
  };
  static constexpr NodeName kNodes[] = {"polyop::HardVoxelize"};
  static constexpr std::tuple kAttributes = {
      Attr("voxel_size", &HardVoxelize::voxel_size, "extents of a voxel along x, y and z").GreaterThan(0).Required(),
      Attr("point_cloud_range", &HardVoxelize::point_cloud_range,
           "minimum x, y and z of the grid, followed by the maximum")
          .Required()
          .Also("coors_range"),
      Attr("max_num_points", &HardVoxelize::max_num_points, "maximum number of points of a voxel")
          .AtLeast(1)
          .Also("max_points"),
      Attr("max_voxels", &HardVoxelize::max_voxels, "maximum number of voxels of a cloud").AtLeast(1),
      Attr("deterministic", &HardVoxelize::deterministic, "has no effect: the result is always deterministic"),
      Attr("return_voxel_num", &HardVoxelize::return_voxel_num,
           "for TensorRT: whether the node has voxel_num; elsewhere it is computed when it is requested"),
  };
  static constexpr Doc kDoc = {
      .summary =
          "Groups points into the voxels of a regular grid, up to a maximum number of voxels and of points per voxel.",
      .semantics = R"(A row of points is (x, y, z, features ...), in the unit of voxel_size. Along each axis the
          grid has round((max - min) / size) cells, with halves rounded away from zero. The cell of a point is
          floor((p - min) / size). All of this is computed in fp32. Points outside the grid, or with a NaN or
          infinite coordinate, are dropped.

          Points are visited in order. A point whose voxel does not exist yet creates it, unless there are
          max_voxels already. A point is copied to its voxel unless that holds max_num_points already. Voxels are
          listed in the order of creation; coors holds their cells (z, y, x) and num_points the number of points in
          each. Unused rows of a voxel are 0.

          For points [N, F], V is the number of voxels created. For clouds [B, N, F], each cloud has max_voxels
          voxels; those not created have points 0, coors -1 and num_points 0. voxel_num is the number of voxels
          created.)",
      .source = "Zhou and Tuzel, VoxelNet, 2018; `mmcv.ops.voxelization` with max_points >= 0",
      .differences = R"(The result is the same on CPU and GPU and takes time linear in the number of points. MMCV's
          deterministic GPU kernel compares every point with all points before it.)",
      .not_portable = "No standard operator numbers groups in the order of their first occurrence.",
  };
};

}  // namespace polyop

#pragma once

#include "core/operator.h"
#include "families/voxels/voxel_range.h"

namespace polyop {

/// Points put into voxels of a limited number and size.
struct HardVoxelize : VoxelRange {
  int64_t max_num_points = 35;
  int64_t max_voxels = 20000;
  bool deterministic = true;
  bool return_voxel_num = false;

  static constexpr const char* kName = "hard_voxelize";
  static constexpr Signature kSignatures[] = {
      "points: T[N, F] -> voxels: T[V<=min(N, max_voxels), max_num_points, F], coors: i32[V, 3], num_points: i32[V], "
      "voxel_num?: i32[1]",
      // Shapes that do not depend on values, as TensorRT likes them.
      "points: T[B, N, F] -> voxels: T[B, max_voxels, max_num_points, F], coors: i32[B, max_voxels, 3], "
      "num_points: i32[B, max_voxels], voxel_num?: i32[B]",
  };
  static constexpr NodeName kNodes[] = {"polyop::HardVoxelize"};
  static constexpr std::tuple kAttributes = {
      Attr("voxel_size", &HardVoxelize::voxel_size, "extents of a voxel along x, y and z").GreaterThan(0).Required(),
      Attr("point_cloud_range", &HardVoxelize::point_cloud_range,
           "the least x, y and z of the grid, and then the greatest")
          .Required()
          .Also("coors_range"),
      Attr("max_num_points", &HardVoxelize::max_num_points, "points that a voxel holds").AtLeast(1).Also("max_points"),
      Attr("max_voxels", &HardVoxelize::max_voxels, "voxels of a cloud").AtLeast(1),
      Attr("deterministic", &HardVoxelize::deterministic, "without effect: the result is always the same"),
      Attr("return_voxel_num", &HardVoxelize::return_voxel_num,
           "for TensorRT: whether voxel_num is there; elsewhere it is made when it is asked for"),
  };
  static constexpr Doc kDoc = {
      .summary = "Puts points into the voxels of a regular grid: so many voxels, so many points in each.",
      .semantics =
          "A row of points is (x, y, z, features ...) in the unit of voxel_size. Along each axis the grid has "
          "round((max - min) / size) cells, halves away from zero; a point's cell is floor((p - min) / size), all in "
          "fp32. A point outside of the grid, or with NaN or infinity among its coordinates, is left out. In their "
          "order, points open voxels while there are fewer than max_voxels, and are copied to theirs while it holds "
          "fewer than max_num_points. Voxels come in the order in which they were opened, coors are their cells (z, y, "
          "x), num_points says how many points they hold; rows behind these are 0. For points [N, F] there are as many "
          "voxels as were opened. For clouds [B, N, F] there are max_voxels of each, those that were not opened with "
          "points 0, coors -1 and num_points 0. voxel_num counts those that were.",
      .source = "Zhou and Tuzel, VoxelNet, 2018; `mmcv.ops.voxelization` with max_points >= 0",
      .differences =
          "The result is the same on CPU and GPU, and takes a time that grows with the number of points; MMCV's "
          "deterministic kernel for GPUs compares every point with all before it.",
      .not_portable = "Standard operators have no numbering of groups in the order in which they first come.",
  };
};

}  // namespace polyop

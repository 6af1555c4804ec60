// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/voxels/cell_grid.h"

namespace polyop {

/// Groups the points of clouds into pillars and computes the input features of PointPillars.
struct VoxelGenerator {
  int64_t max_num_points_per_voxel = 3;
  int64_t max_voxels = 5;
  std::array<float, 6> point_cloud_range{-4, -4, -4, 4, 4, 4};
  int64_t voxel_feature_num = 10;
  std::array<float, 3> voxel_size{1, 1, 1};

  static constexpr const char* kName = "voxel_generator";
  static constexpr Signature kSignature =
      "points: T[N, M, F], num_points: I[N] -> "
      "voxels: T[N, max_voxels, max_num_points_per_voxel, voxel_feature_num], coords: i32[N, max_voxels, 4], "
      "num_pillar: i32[N]";
  static constexpr NodeName kNodes[] = {"polyop::VoxelGeneratorPlugin", "TRT::VoxelGeneratorPlugin",
                                        "::VoxelGeneratorPlugin"};
  static constexpr std::tuple kAttributes = {
      Attr("max_num_points_per_voxel", &VoxelGenerator::max_num_points_per_voxel,
           "maximum number of points of a pillar")
          .AtLeast(1)
          .Required(),
      Attr("max_voxels", &VoxelGenerator::max_voxels, "maximum number of pillars of a cloud").AtLeast(1).Required(),
      Attr("point_cloud_range", &VoxelGenerator::point_cloud_range,
           "minimum x, y and z, followed by the exclusive maximum")
          .Required(),
      Attr("voxel_feature_num", &VoxelGenerator::voxel_feature_num,
           "number of features of a point: F + 5, or F + 6 with the z offset")
          .Between(9, 11)
          .Required(),
      Attr("voxel_size", &VoxelGenerator::voxel_size,
           "extents of a pillar; the extent along z is used only for its centre")
          .GreaterThan(0)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Groups the points of clouds into pillars and computes their features, as TensorRT's
          VoxelGeneratorPlugin does.)",
      .semantics = R"(The first num_points[n] rows of cloud n are points: (x, y, z, intensity), optionally with a
          fifth component. Points within point_cloud_range, min <= p < max, are assigned to a grid of round((max -
          min) / size) cells along x and y, with halves rounded to even. The cell of a point is floor((p - min) /
          size). All of this is computed in fp32. A point whose cell is beyond the grid, or that is NaN, is dropped.
          Points are visited in order. A point whose pillar does not exist yet creates it, unless there are
          max_voxels already; a point is added to its pillar unless that holds max_num_points_per_voxel already.

          The features of a point are its own components, (x, y, z) minus the mean of the pillar's points, (x, y)
          minus the centre of the cell, and, if voxel_feature_num is F + 6, z minus (min z + size z / 2). They are
          computed in float. Rows of coords are (0, 0, y, x). Pillars are listed in the order of creation. Features
          and coords of unused pillars, and features of unused points of a pillar, are 0. It is an error if a
          num_points is negative or greater than M.)",
      .source = "Lang et al., PointPillars, 2019; TensorRT's VoxelGeneratorPlugin",
      .differences = R"(The plugin's order of points and pillars is non-deterministic. It writes past the end of
          coords if there are more than max_voxels pillars. For points of five components, it writes the z offset to
          a wrong position.)",
      .not_portable = "No standard operator numbers groups in the order of their first occurrence.",
  };

  CellGrid grid() const {
    CellGrid grid{};
    (void)MakeGrid(&grid);  // Check() has verified that it succeeds
    return grid;
  }
  Status Check() const {
    CellGrid grid{};
    return MakeGrid(&grid);
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckVoxelPoints(inputs[0]));
    const int64_t components = inputs[0].shape[2];
    if (components != 4 && components != 5) {
      return InvalidArgument("'points': expected 4 or 5 in dimension 2, got shape ", ToString(inputs[0].shape));
    }
    if (voxel_feature_num == components + 5 || voxel_feature_num == components + 6) return Status::Ok();
    return InvalidArgument("attribute 'voxel_feature_num': expected ", components + 5, " or ", components + 6,
                           " for points of ", components, " components, got ", voxel_feature_num);
  }

 private:
  // The grid has a single cell along z, whatever its extent is.
  Status MakeGrid(CellGrid* grid) const {
    const std::array<float, 3> size{voxel_size[0], voxel_size[1], point_cloud_range[5] - point_cloud_range[2]};
    if (!(size[2] > 0)) {
      return InvalidArgument("attribute 'point_cloud_range'[5]: expected more than the minimum ", point_cloud_range[2],
                             ", got ", point_cloud_range[5]);
    }
    POLYOP_RETURN_IF_ERROR(MakeCellGrid(size, point_cloud_range, HalfCells::kToEven, grid));
    for (int a = 0; a < 3; ++a) {
      grid->from[a] = point_cloud_range[static_cast<size_t>(a)];
      grid->to[a] = point_cloud_range[static_cast<size_t>(a) + 3];
    }
    grid->size[2] = std::numeric_limits<float>::infinity();
    return Status::Ok();
  }
};

}  // namespace polyop

#pragma once

#include "core/operator.h"
#include "families/voxels/cell_grid.h"

namespace polyop {

/// The pillars of point clouds with the features that PointPillars learns from.
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
      Attr("max_num_points_per_voxel", &VoxelGenerator::max_num_points_per_voxel, "points that a pillar holds")
          .AtLeast(1)
          .Required(),
      Attr("max_voxels", &VoxelGenerator::max_voxels, "pillars of a cloud").AtLeast(1).Required(),
      Attr("point_cloud_range", &VoxelGenerator::point_cloud_range,
           "the least x, y and z, and then what they must lie below")
          .Required(),
      Attr("voxel_feature_num", &VoxelGenerator::voxel_feature_num, "features of a point: F + 5, or F + 6 with z")
          .Between(9, 11)
          .Required(),
      Attr("voxel_size", &VoxelGenerator::voxel_size, "extents of a pillar; that along z is of its centre alone")
          .GreaterThan(0)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Puts the points of clouds into pillars and makes their features, as TensorRT's VoxelGeneratorPlugin.",
      .semantics =
          "Of cloud n the first num_points[n] rows are points: (x, y, z, intensity), or with a fifth number. Those "
          "that "
          "are in point_cloud_range, min <= p < max, are put into a grid of round((max - min) / size) cells, halves to "
          "even, along x and y; a cell is floor((p - min) / size), all in fp32, and one beyond the grid drops its "
          "point, as NaN does. In their order, points open pillars while there are fewer than max_voxels, and enter "
          "theirs while it holds fewer than max_num_points_per_voxel. A point's features are its own numbers, (x, y, "
          "z) less the mean of the pillar's points, (x, y) less the cell's centre, and, where voxel_feature_num is F + "
          "6, z less min z + size z / 2; they are computed in float. Rows of coords are (0, 0, y, x). Pillars come in "
          "the order in which they were opened; features and coords behind them, and features behind a pillar's "
          "points, are 0. A num_points that is negative or greater than M is an error.",
      .source = "Lang et al., PointPillars, 2019; TensorRT's VoxelGeneratorPlugin",
      .differences =
          "The plugin orders points and pillars by chance, writes behind coords where there are more pillars than "
          "max_voxels, and of five numbers puts the z of the centre in a wrong place.",
      .not_portable = "Standard operators have no numbering of groups in the order in which they first come.",
  };

  CellGrid grid() const {
    CellGrid made{};
    (void)MakeGrid(&made);  // Check() saw to it
    return made;
  }
  Status Check() const {
    CellGrid made{};
    return MakeGrid(&made);
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckVoxelPoints(inputs[0]));
    const int64_t numbers = inputs[0].shape[2];
    if (numbers != 4 && numbers != 5) {
      return InvalidArgument("'points' has shape ", ToString(inputs[0].shape), ", wanted 4 or 5 in dimension 2");
    }
    if (voxel_feature_num == numbers + 5 || voxel_feature_num == numbers + 6) return Status::Ok();
    return InvalidArgument("attribute 'voxel_feature_num' is ", voxel_feature_num, ", wanted ", numbers + 5, " or ",
                           numbers + 6, " for points of ", numbers, " numbers");
  }

 private:
  // One cell along z, however far apart its ends are.
  Status MakeGrid(CellGrid* grid) const {
    const std::array<float, 3> size{voxel_size[0], voxel_size[1], point_cloud_range[5] - point_cloud_range[2]};
    if (!(size[2] > 0)) {
      return InvalidArgument("attribute 'point_cloud_range'[5] is ", point_cloud_range[5], ", wanted more than ",
                             point_cloud_range[2], ", the least coordinate");
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

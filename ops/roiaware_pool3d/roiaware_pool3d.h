#pragma once

#include <array>

#include "core/operator.h"
#include "families/points/box3d.h"
#include "families/points/point_count.h"

namespace polyop {

/// Features of points pooled into a grid of cells within each box.
struct RoiawarePool3d {
  enum class Mode { kMax, kAvg };
  std::array<int64_t, 3> out_size{1, 1, 1};
  int64_t max_pts_per_voxel = 128;
  Mode mode = Mode::kMax;

  static constexpr const char* kName = "roiaware_pool3d";
  static constexpr Signature kSignature =
      "rois: T[R, 7], points: T[N, 3], features: T[N, C] -> pooled: T[R, out_size[0], out_size[1], out_size[2], C]";
  static constexpr NodeName kNodes[] = {"polyop::RoIAwarePool3d"};
  static constexpr std::tuple kAttributes = {
      Attr("out_size", &RoiawarePool3d::out_size, "cells along a box's x, y and z").Between(1, 256).Required(),
      Attr("max_pts_per_voxel", &RoiawarePool3d::max_pts_per_voxel,
           "one more than the points that a cell takes, its first")
          .AtLeast(1),
      Attr("mode", &RoiawarePool3d::mode, "how a cell's points are pooled").OneOf("max", "avg"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools the features of the points in each cell of a grid within each box.",
      .semantics = POLYOP_BOX3D_SEMANTICS
      "A box is cut into out_size cells along its own axes, in fp64; a point on the lid is in the highest. A cell "
      "takes its first max_pts_per_voxel - 1 points by index, and is 0 if it has none. Averages are summed in float in "
      "this order. A NaN feature makes its cell's average NaN; it is never a maximum, and a cell of NaN alone is 0.",
      .source =
          "`mmcv.ops.RoIAwarePool3d`; Shi et al., From Points to Parts: 3D Object Detection from Point Cloud with "
          "Part-aware and Part-aggregation Network (Part-A²), 2019",
      .differences =
          "MMCV decides in fp32 and has kernels for GPUs alone. Of equal maxima there the first alone has a gradient, "
          "here all share it.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("points", inputs[1], 0); }
};

}  // namespace polyop

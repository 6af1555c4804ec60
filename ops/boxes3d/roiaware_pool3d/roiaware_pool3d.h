// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "core/operator.h"
#include "ops/boxes3d/box3d.h"
#include "ops/points/point_count.h"

namespace polyop {

/// Pools features of points into a grid of cells within each 3-D box.
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
      Attr("out_size", &RoiawarePool3d::out_size, "number of cells along the x, y and z axes of a box")
          .Between(1, 256)
          .Required(),
      Attr("max_pts_per_voxel", &RoiawarePool3d::max_pts_per_voxel,
           "maximum number of points that a cell pools, plus one")
          .AtLeast(1),
      Attr("mode", &RoiawarePool3d::mode, "how to pool the points of a cell").OneOf("max", "avg"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools the features of the points in each cell of a grid within each 3-D box.",
      .semantics = POLYOP_BOX3D_SEMANTICS
      R"(A box is divided into out_size cells along its own axes, in fp64; a point on the top face belongs to the
      highest cell. A cell pools its first max_pts_per_voxel - 1 points by index, and is 0 if it has none. Averages
      are summed in float in this order. A NaN feature makes the average of its cell NaN. NaN is ignored in a
      maximum; the maximum of a cell that contains only NaN is 0.)",
      .source = R"(`mmcv.ops.RoIAwarePool3d`; Shi et al., From Points to Parts: 3D Object Detection from Point Cloud
          with Part-aware and Part-aggregation Network (Part-A²), 2019)",
      .differences = R"(MMCV decides in fp32 and has GPU kernels only. Among equal maxima, the first one receives the
          gradient, as in MMCV; in second derivatives and on the GPU they share it.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("points", inputs[1], 0); }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/boxes3d/box3d.h"
#include "ops/points/point_count.h"

namespace polyop {

/// The first points in each 3-D box, with their features.
struct RoipointPool3d {
  int64_t num_sampled_points = 512;

  static constexpr const char* kName = "roipoint_pool3d";
  static constexpr Signature kSignature =
      "points: T[B, N, 3], features: T[B, N, C], boxes: T[B, M, 7] -> pooled: T[B, M, num_sampled_points, 3 + C], "
      "empty: i32[B, M]";
  static constexpr NodeName kNodes[] = {"polyop::RoIPointPool3d"};
  static constexpr std::tuple kAttributes = {
      Attr("num_sampled_points", &RoipointPool3d::num_sampled_points, "number of points of a box").AtLeast(1),
  };
  static constexpr Doc kDoc = {
      .summary = "Copies the coordinates and features of the first `num_sampled_points` points in each 3-D box.",
      .semantics = POLYOP_BOX3D_SEMANTICS
      R"(Points are listed by ascending index. If a box contains fewer points, they repeat from the first one on. If
      it contains none, its rows are 0 and `empty` is 1, else 0. Coordinates and features are copied unchanged.)",
      .source = "`mmcv.ops.RoIPointPool3d`; Shi et al., PointRCNN, 2019",
      .differences = "MMCV decides in fp32 and has GPU kernels only. Like MMCV's, this operator has no gradient.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("points", inputs[0], 1); }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/boxes3d/box3d.h"

namespace polyop {

/// All boxes that contain each point.
struct PointsInBoxesAll {
  static constexpr const char* kName = "points_in_boxes_all";
  static constexpr Signature kSignature = "points: T[B, M, 3], boxes: T[B, K, 7] -> inside: i32[B, M, K]";
  static constexpr NodeName kNodes[] = {"polyop::PointsInBoxesAll"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Tests which points lie in which 3-D boxes.",
      .semantics = POLYOP_BOX3D_SEMANTICS "`inside` is 1 where the box contains the point, else 0.",
      .source = "`mmcv.ops.points_in_boxes_all`",
      .differences = "MMCV decides in fp32.",
  };
};

}  // namespace polyop

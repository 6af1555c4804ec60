// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/boxes3d/box3d.h"
#include "ops/points/point_count.h"

namespace polyop {

/// The first box that contains each point.
struct PointsInBoxesPart {
  static constexpr const char* kName = "points_in_boxes_part";
  static constexpr Signature kSignature = "points: T[B, M, 3], boxes: T[B, K, 7] -> box: i32[B, M]";
  static constexpr NodeName kNodes[] = {"polyop::PointsInBoxesPart"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Finds the first 3-D box that contains each point, or -1.",
      .semantics = POLYOP_BOX3D_SEMANTICS "`box` is the lowest index of a box that contains the point, or -1.",
      .source = "`mmcv.ops.points_in_boxes_part`",
      .differences = "MMCV decides in fp32. Its CPU kernel, `points_in_boxes_cpu`, returns all boxes.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("boxes", inputs[1], 1); }
};

}  // namespace polyop

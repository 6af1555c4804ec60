#pragma once

#include "core/operator.h"
#include "families/points/box3d.h"
#include "families/points/point_count.h"

namespace polyop {

/// The first box around each point.
struct PointsInBoxesPart {
  static constexpr const char* kName = "points_in_boxes_part";
  static constexpr Signature kSignature = "points: T[B, M, 3], boxes: T[B, K, 7] -> box: i32[B, M]";
  static constexpr NodeName kNodes[] = {"polyop::PointsInBoxesPart"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "The first box that each point lies in, or -1.",
      .semantics = POLYOP_BOX3D_SEMANTICS "`box` is the lowest index of a box that holds the point, -1 if none does.",
      .source = "`mmcv.ops.points_in_boxes_part`",
      .differences = "MMCV decides in fp32. Its kernel for CPUs, `points_in_boxes_cpu`, gives all boxes.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("boxes", inputs[1], 1); }
};

}  // namespace polyop

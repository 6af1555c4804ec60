// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Tests which points lie in which polygons.
struct PointsInPolygons {
  static constexpr const char* kName = "points_in_polygons";
  static constexpr Signature kSignature = "points: T[N, 2], polygons: T[M, E] -> inside: i32[N, M]";
  static constexpr NodeName kNodes[] = {"polyop::PointsInPolygons", "mmcv::MMCVPointsInPolygons"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Tests which points lie in which polygons.",
      .semantics = R"(A point is (x, y). A polygon is (x1, y1, x2, y2, ...) with at least three corners in either
          orientation; all polygons have the same number of corners. `inside` is 1 where a ray from the point to the
          right crosses an odd number of sides, else 0. A point on a side or corner is outside, and so is every pair
          in which the point or the polygon contains NaN or infinity. Points are compared with sides in fp64.)",
      .source = "`mmcv.ops.points_in_polygons`, whose polygons have four corners",
      .differences = "MMCV decides in fp32; for points on a side its result depends on the order of the corners.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t coordinates = inputs[1].shape[1];
    if (coordinates >= 6 && coordinates % 2 == 0) return Status::Ok();
    return InvalidArgument("'polygons': expected x and y of at least 3 corners in a row, got ", coordinates, " values");
  }
};

}  // namespace polyop

#pragma once

#include "core/operator.h"

namespace polyop {

/// Which points lie in which polygons.
struct PointsInPolygons {
  static constexpr const char* kName = "points_in_polygons";
  static constexpr Signature kSignature = "points: T[N, 2], polygons: T[M, E] -> inside: i32[N, M]";
  static constexpr NodeName kNodes[] = {"polyop::PointsInPolygons", "mmcv::MMCVPointsInPolygons"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Which points lie in which polygons: 1 or 0.",
      .semantics =
          "A point is (x, y), a polygon (x1, y1, x2, y2, ...): three corners or more in either sense, as many for "
          "each. "
          "`inside` is 1 where a ray from the point to the right crosses an odd number of sides. A point on a side or "
          "corner is outside, and so is all that has NaN or infinity in it or in the polygon. Sides are compared with "
          "points in fp64.",
      .source = "`mmcv.ops.points_in_polygons`, whose polygons have four corners",
      .differences = "MMCV decides in fp32, and of points on a side by the order of the corners.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t numbers = inputs[1].shape[1];
    if (numbers >= 6 && numbers % 2 == 0) return Status::Ok();
    return InvalidArgument("'polygons' has ", numbers, " numbers a row, wanted x and y of 3 corners or more");
  }
};

}  // namespace polyop

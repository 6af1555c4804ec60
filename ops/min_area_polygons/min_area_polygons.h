#pragma once

#include "core/operator.h"

namespace polyop {

/// The smallest rectangle around each set of nine points.
struct MinAreaPolygons {
  static constexpr const char* kName = "min_area_polygons";
  static constexpr Signature kSignature = "pointsets: T[N, 18] -> polygons: T[N, 8]";
  static constexpr NodeName kNodes[] = {"polyop::MinAreaPolygons"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "The smallest rectangle, in any direction, around each set of nine points (Oriented RepPoints).",
      .semantics =
          "A set is (x1, y1, ..., x9, y9), a rectangle four corners (x, y). Of the rectangle's four directions one, "
          "(cos a, sin a), has a in [0, pi / 2): seen along it, the corners come as (last, first), (first, first), "
          "(first, last), (last, last), along it and along (-sin a, cos a). Of rectangles of the same area, to 1e-9 of "
          "it, the one of the smallest a is taken. Points on one line give a rectangle without an area, nine equal "
          "ones that point. A set with NaN or infinity in it gives NaN. All is computed in fp64 and rounded once.",
      .source =
          "`mmcv.ops.min_area_polygons`; Freeman, Shapira, Determining the minimum-area encasing rectangle for an "
          "arbitrary closed curve, 1975; Li et al., Oriented RepPoints for Aerial Object Detection, 2022",
      .differences =
          "MMCV computes in fp32, takes the first rectangle of least area in the order of the points' hull, and for a "
          "side that points straight down a = pi / 2.",
  };
};

}  // namespace polyop

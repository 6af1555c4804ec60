// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// The minimum-area rectangle around each set of nine points.
struct MinAreaPolygons {
  static constexpr const char* kName = "min_area_polygons";
  static constexpr Signature kSignature = "pointsets: T[N, 18] -> polygons: T[N, 8]";
  static constexpr NodeName kNodes[] = {"polyop::MinAreaPolygons"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = R"(Computes the minimum-area rectangle, in any orientation, around each set of nine points
          (Oriented RepPoints).)",
      .semantics = R"(A set is (x1, y1, ..., x9, y9), a rectangle four corners (x, y). Exactly one of the four
          directions of a rectangle's sides, (cos a, sin a), has a in [0, pi / 2). With respect to the axes (cos a,
          sin a) and (-sin a, cos a), the corners are listed as (max, min), (min, min), (min, max), (max, max).

          Among rectangles of equal area, to a relative tolerance of 1e-9, the one with the smallest a is chosen.
          Collinear points give a rectangle of area 0, nine equal points give that point four times. A set that
          contains NaN or infinity gives NaN. Everything is computed in fp64 and rounded once.)",
      .source = R"(`mmcv.ops.min_area_polygons`; Freeman, Shapira, Determining the minimum-area encasing rectangle
          for an arbitrary closed curve, 1975; Li et al., Oriented RepPoints for Aerial Object Detection, 2022)",
      .differences = R"(MMCV computes in fp32, takes the first rectangle of minimum area in the order of the points'
          convex hull, and uses a = pi / 2 for a side that points straight down.)",
  };
};

}  // namespace polyop

#pragma once

#include "core/operator.h"

namespace polyop {

/// How well the hulls of points match quadrilaterals, and which way the points would have to move.
struct ConvexGiou {
  static constexpr const char* kName = "convex_giou";
  static constexpr Signature kSignature = "pointsets: T[N, 18], polygons: T[N, 8] -> output: T[N, 19]";
  static constexpr NodeName kNodes[] = {"polyop::ConvexGIoU"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary =
          "The generalised IoU of the convex hull of each of N sets of nine points with a quadrilateral of its own, "
          "behind its gradient by the points (CFA).",
      .semantics =
          "A set is (x1, y1, ..., x9, y9), a quadrilateral (x1, y1, ..., x4, y4); of both it is the convex hull that "
          "counts. A row of the output is the gradient by the set's 18 coordinates and then the GIoU: IoU - (C - U) / "
          "C, where U is the area of both together and C that of the hull around both. Areas and gradients are exact; "
          "all is computed in fp64 and rounded once. Of a hull's points only the corners have a gradient, and of equal "
          "points the first. A side of the set that lies on one of the quadrilateral counts as within it: the gradient "
          "there is one of two. A hull whose area is below 1e-14 has none; where the one around both has none the row "
          "is 0. NaN and infinity make their row NaN.",
      .source =
          "`mmcv.ops.convex_giou`; Guo et al., Beyond Bounding-Box: Convex-hull Feature Adaptation for Oriented and "
          "Densely Packed Object Detection, 2021; Rezatofighi et al., Generalized Intersection over Union, 2019",
      .differences =
          "MMCV computes in fp32, takes the area of a quadrilateral that is not convex by the order of its corners, "
          "and gives other gradients where sides lie on one another.",
      .not_portable = "Hulls cut by the sides of quadrilaterals would take hundreds of nodes in standard operators.",
  };
};

}  // namespace polyop

#pragma once

#include "core/operator.h"

namespace polyop {

/// How much the hulls of points overlap quadrilaterals.
struct ConvexIou {
  static constexpr const char* kName = "convex_iou";
  static constexpr Signature kSignature = "pointsets: T[N, 18], polygons: T[K, 8] -> ious: T[N, K]";
  static constexpr NodeName kNodes[] = {"polyop::ConvexIoU"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "The IoU of the convex hull of each of N sets of nine points with each of K quadrilaterals (CFA).",
      .semantics =
          "A set is (x1, y1, ..., x9, y9), a quadrilateral (x1, y1, ..., x4, y4); of both it is the convex hull that "
          "counts. Areas are exact; all is computed in fp64 and rounded once. What has NaN or infinity in it, or an "
          "area below 1e-14, overlaps nothing.",
      .source =
          "`mmcv.ops.convex_iou`; Guo et al., Beyond Bounding-Box: Convex-hull Feature Adaptation for Oriented and "
          "Densely Packed Object Detection, 2021",
      .differences =
          "MMCV computes in fp32, and takes the area of a quadrilateral that is not convex by the order of its "
          "corners.",
      .not_portable = "Hulls cut by the sides of quadrilaterals would take hundreds of nodes in standard operators.",
  };
};

}  // namespace polyop

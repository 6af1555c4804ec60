// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Computes the IoU of the hulls of points with quadrilaterals.
struct ConvexIou {
  static constexpr const char* kName = "convex_iou";
  static constexpr Signature kSignature = "pointsets: T[N, 18], polygons: T[K, 8] -> ious: T[N, K]";
  static constexpr NodeName kNodes[] = {"polyop::ConvexIoU"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = R"(Computes the IoU of the convex hull of each of N sets of nine points with each of K quadrilaterals
          (CFA).)",
      .semantics = R"(A set is (x1, y1, ..., x9, y9), a quadrilateral (x1, y1, ..., x4, y4); both are replaced by their
          convex hulls. Areas are exact; everything is computed in fp64 and rounded once. A set or quadrilateral with a
          NaN or infinite coordinate, or with an area below 1e-14, overlaps nothing.)",
      .source = R"(`mmcv.ops.convex_iou`; Guo et al., Beyond Bounding-Box: Convex-hull Feature Adaptation for Oriented
          and Densely Packed Object Detection, 2021)",
      .differences = R"(MMCV computes in fp32, and computes the area of a non-convex quadrilateral from the order of its
          corners.)",
      .not_portable = "Clipping hulls by the sides of quadrilaterals would take hundreds of standard nodes.",
  };
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Computes the generalised IoU of the hulls of points with quadrilaterals, and its gradient.
struct ConvexGiou {
  static constexpr const char* kName = "convex_giou";
  static constexpr Signature kSignature = "pointsets: T[N, 18], polygons: T[N, 8] -> output: T[N, 19]";
  static constexpr NodeName kNodes[] = {"polyop::ConvexGIoU"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = R"(Computes the generalised IoU of the convex hull of each of N sets of nine points with its
          quadrilateral, and the gradient with respect to the points (CFA).)",
      .semantics = R"(A set is (x1, y1, ..., x9, y9), a quadrilateral (x1, y1, ..., x4, y4); both are replaced by their
          convex hulls. A row of the output is the gradient with respect to the set's 18 coordinates, followed by the
          GIoU: IoU - (C - U) / C, where U is the area of the union and C the area of the hull of both. Areas and
          gradients are exact; everything is computed in fp64 and rounded once. Only points that are corners of a hull
          have a gradient; of equal points, only the first. A side of the set that lies on a side of the quadrilateral
          counts as within it, which selects one of the two one-sided gradients. A hull with an area below 1e-14 counts
          as empty; if that is the hull of both, the row is 0. NaN and infinity make their row NaN.)",
      .source = R"(`mmcv.ops.convex_giou`; Guo et al., Beyond Bounding-Box: Convex-hull Feature Adaptation for Oriented
          and Densely Packed Object Detection, 2021; Rezatofighi et al., Generalized Intersection over Union, 2019)",
      .differences = R"(MMCV computes in fp32, computes the area of a non-convex quadrilateral from the order of its
          corners, and returns other gradients where sides coincide.)",
      .not_portable = "Clipping hulls by the sides of quadrilaterals would take hundreds of standard nodes.",
  };
};

}  // namespace polyop

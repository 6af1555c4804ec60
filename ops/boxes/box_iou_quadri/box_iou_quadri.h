// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Computes the overlap of each pair of quadrilaterals.
struct BoxIouQuadri {
  enum class Mode { kIou, kIof };
  Mode mode = Mode::kIou;

  static constexpr const char* kName = "box_iou_quadri";
  static constexpr Signature kSignatures[] = {
      "boxes_a: T[M, 8], boxes_b: T[N, 8] -> overlap: T[M, N]",
      "boxes_a: T[B, M, 8], boxes_b: T[B, N, 8] -> overlap: T[B, M, N]",
  };
  static constexpr NodeName kNodes[] = {"polyop::BoxIoUQuadri"};
  static constexpr std::tuple kAttributes = {
      Attr("mode", &BoxIouQuadri::mode,
           "divisor of the intersection area: `iou`, the area of the union; `iof`, the area of the first box")
          .OneOf("iou", "iof"),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the overlap (IoU or IoF) of each of M quadrilaterals with each of N others.",
      .semantics = R"(A quadrilateral is (x1, y1, ..., x4, y4): the convex hull of its corners in any order. The
          intersection area is exact; everything is computed in fp64 and rounded once. A quadrilateral with a NaN or
          infinite coordinate, or with an area below 1e-14, overlaps nothing. With a batch dimension, only
          quadrilaterals of the same batch element are compared; shapes [N, 1, 8] and [N, 1, 8] therefore compare N
          pairs element by element.)",
      .source = "`mmcv.ops.box_iou_quadri`",
      .differences = R"(MMCV computes in fp32, tests whether a corner is inside as if the quadrilateral were a
          rectangle, and computes the area of a non-convex quadrilateral from the order of its corners.)",
      .not_portable = R"(Clipping all pairs of quadrilaterals by their eight sides would take hundreds of standard
          nodes.)",
  };
};

}  // namespace polyop

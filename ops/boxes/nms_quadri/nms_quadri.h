// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "core/operator.h"

namespace polyop {

/// Greedy non-maximum suppression of quadrilaterals.
struct NmsQuadri {
  float iou_threshold = 0.5f;
  float score_threshold = -std::numeric_limits<float>::infinity();

  static constexpr const char* kName = "nms_quadri";
  static constexpr Signature kSignature = "boxes: f32[N, 8], scores: f32[N] -> keep: i64[K<=N]";
  static constexpr NodeName kNodes[] = {"polyop::NMSQuadri"};
  static constexpr std::tuple kAttributes = {
      Attr("iou_threshold", &NmsQuadri::iou_threshold,
           "a kept box suppresses boxes whose IoU with it exceeds this threshold")
          .Between(0, 1),
      Attr("score_threshold", &NmsQuadri::score_threshold, "only boxes with a score greater than this take part")
          .MayBeInfinite(),
  };
  static constexpr Doc kDoc = {
      .summary = "Greedy non-maximum suppression of quadrilaterals.",
      .semantics = R"(A box is (x1, y1, ..., x4, y4): the convex hull of its corners, in any order. keep holds the
          indices of the kept boxes by descending score; among equal scores the lower index comes first. The IoU is
          that of box_iou_quadri, compared in double precision. A box that contains NaN or infinity, or whose area
          is below 1e-14, overlaps nothing. A NaN score is not above the threshold.)",
      .source = "`mmcv.ops.nms_quadri`",
      .differences = R"(MMCV computes in fp32, tests whether a corner is inside as if the box were a rectangle, and
          computes the area of non-convex boxes from the order of their corners. It accepts labels, but ignores
          them.)",
      .not_portable = R"(Clipping all pairs of quadrilaterals by their eight sides would take hundreds of standard
          operators, and the suppression a Loop with one iteration per box.)",
  };
};

}  // namespace polyop

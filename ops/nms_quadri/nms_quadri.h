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
      Attr("iou_threshold", &NmsQuadri::iou_threshold, "a box goes when its IoU with a kept one is greater")
          .Between(0, 1),
      Attr("score_threshold", &NmsQuadri::score_threshold, "only boxes of a greater score take part").MayBeInfinite(),
  };
  static constexpr Doc kDoc = {
      .summary = "Keeps the best quadrilateral of every group of overlapping ones.",
      .semantics =
          "A box is (x1, y1, ..., x4, y4): the convex hull of its corners, whatever their order. The result holds the "
          "indices of the kept boxes by falling score; of equal scores the lower index comes first. IoU is that of "
          "box_iou_quadri, decided in double precision: a box with NaN or infinity in it, or of an area below 1e-14, "
          "overlaps nothing. A NaN score is not above the threshold.",
      .source = "`mmcv.ops.nms_quadri`",
      .differences =
          "MMCV computes in fp32, takes a corner to be inside where it would be inside of a rectangle, and the area of "
          "what is not convex by the order of its corners. It takes labels, and does not look at them.",
      .not_portable =
          "Cut by their eight sides in standard operators, all pairs of quadrilaterals would take hundreds of nodes, "
          "and the suppression a Loop of a turn for each box.",
  };
};

}  // namespace polyop

#pragma once

#include "core/operator.h"

namespace polyop {

/// How much the quadrilaterals of two sets overlap.
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
      Attr("mode", &BoxIouQuadri::mode, "what the shared area is divided by: that of both together, or of the first")
          .OneOf("iou", "iof"),
  };
  static constexpr Doc kDoc = {
      .summary = "How much each of M quadrilaterals overlaps each of N others.",
      .semantics =
          "A quadrilateral is (x1, y1, ..., x4, y4): the convex hull of its corners, whatever their order. The shared "
          "area is exact; all is computed in fp64 and rounded once. One with NaN or infinity in it, or of an area "
          "below "
          "1e-14, overlaps nothing. In batches, quadrilaterals meet those of their own alone: pairs [N, 1, 8] and "
          "[N, 1, 8] are compared one by one.",
      .source = "`mmcv.ops.box_iou_quadri`",
      .differences =
          "MMCV computes in fp32, takes a corner to be inside where it would be inside of a rectangle, and the area "
          "of a quadrilateral that is not convex by the order of its corners.",
      .not_portable =
          "Cut by their eight sides in standard operators, all pairs of quadrilaterals would take hundreds of nodes.",
  };
};

}  // namespace polyop

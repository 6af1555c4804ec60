#pragma once

#include "core/operator.h"

namespace polyop {

/// Greedy non-maximum suppression of axis-aligned boxes.
struct Nms {
  float iou_threshold = 0.5f;
  int64_t offset = 0;

  static constexpr const char* kName = "nms";
  static constexpr Signature kSignature = "boxes: f32[N, 4], scores: f32[N] -> keep: i64[K<=N]";
  static constexpr NodeName kNodes[] = {"mmcv::NonMaxSuppression"};
  static constexpr std::tuple kAttributes = {
      Attr("iou_threshold", &Nms::iou_threshold, "a box goes when its IoU with a kept one is greater").Between(0, 1),
      Attr("offset", &Nms::offset, "added to every width and height: 1 where x2, y2 are the last pixel").Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Keeps the best box of every group of overlapping ones.",
      .semantics =
          "Boxes are (x1, y1, x2, y2). The result holds the indices of the kept boxes by falling score; of equal "
          "scores the lower index comes first. A box is suppressed by a kept box of a higher score when "
          "their intersection is greater than iou_threshold times their union; borderline cases are decided in double "
          "precision, so every instruction set keeps the same boxes. A NaN score counts as the lowest; a box with a "
          "NaN or reversed coordinate suppresses nothing and is never suppressed.",
      .source = "`torchvision.ops.nms`, and `mmcv.ops.nms` with `offset`",
      .differences =
          "ONNX's NonMaxSuppression takes batches and classes and puts reversed corners in order; "
          "here boxes are taken as they are, as MMCV does.",
  };
};

}  // namespace polyop

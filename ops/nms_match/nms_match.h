#pragma once

#include "core/operator.h"
#include "families/boxes/boxes_overlap.h"

namespace polyop {

/// Greedy non-maximum suppression that tells which box suppressed which.
struct NmsMatch {
  static constexpr const char* kName = "nms_match";
  static constexpr Signature kSignature =
      "boxes: f32[B, N, 4], scores: f32[B, C, N], iou_threshold: f32[], score_threshold: f32[] -> "
      "matches: i64[K<=B * C * N, 4]";
  static constexpr NodeName kNodes[] = {"mmdeploy::NMSMatch"};
  static constexpr std::tuple kAttributes = {};
  static constexpr Doc kDoc = {
      .summary = "Lists every suppressed box beside the box that suppressed it.",
      .semantics =
          "Boxes are (x1, y1, x2, y2). In each class of each picture the best box left takes all boxes left whose "
          "IoU with it is iou_threshold or more; equal scores go by the lower index, NaN comes last. The result "
          "holds rows (picture, class, box, suppressed box), in the order of pictures, classes, and falling scores "
          "of both. Boxes of a score that is not above score_threshold take boxes too, but are not listed. A box "
          "with a NaN or reversed coordinate, or an infinite area, has IoU 0 with every other. A threshold that is "
          "NaN is an error.",
      .source = "`mmcv.ops.nms_match`; MMDeploy's NMSMatch",
      .differences = "none known; the IoU is found in double precision and rounded to float",
      .not_portable = "ONNX's NonMaxSuppression says which boxes stay, not which of them each other one fell to.",
  };
};

/// Whether the IoU, rounded to float, is the threshold or more. So 3 / 10 is 0.3f, as it is where all is in float; two
/// equal boxes without area do not match.
POLYOP_HD inline bool Matches(const BoxOverlap& overlap, float threshold) {
  if (threshold <= 0) return true;
  return overlap.intersection > 0 && static_cast<float>(overlap.intersection / overlap.united) >= threshold;
}

}  // namespace polyop

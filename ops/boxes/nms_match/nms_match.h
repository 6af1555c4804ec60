// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/boxes/boxes_overlap.h"

namespace polyop {

/// Greedy non-maximum suppression that reports which box suppressed which.
struct NmsMatch {
  static constexpr const char* kName = "nms_match";
  static constexpr Signature kSignature =
      "boxes: f32[B, N, 4], scores: f32[B, C, N], iou_threshold: f32[], score_threshold: f32[] -> "
      "matches: i64[K<=B * C * N, 4]";
  static constexpr NodeName kNodes[] = {"mmdeploy::NMSMatch"};
  static constexpr std::tuple kAttributes = {};
  static constexpr Doc kDoc = {
      .summary =
          "Greedy non-maximum suppression that lists every suppressed box together with the box that suppressed it.",
      .semantics = R"(Boxes are (x1, y1, x2, y2). In each class of each image, the remaining box of the highest
          score is kept and suppresses all remaining boxes whose IoU with it is at least iou_threshold, until no
          boxes remain. Among equal scores the lower index comes first, and NaN comes last. matches holds rows
          (image, class, box, suppressed box), ordered by image, class and the descending scores of both boxes.
          Boxes whose score is not greater than score_threshold suppress others as well, but are not listed.

          A box with NaN or reversed coordinates, or of infinite area, has IoU 0 with every other box. It is an
          error if a threshold is NaN.)",
      .source = "`mmcv.ops.nms_match`; MMDeploy's NMSMatch",
      .differences = "none known; the IoU is computed in double precision and rounded to float",
      .not_portable =
          "ONNX's NonMaxSuppression reports which boxes are kept, but not which of them suppressed each of the others.",
  };
};

/// Returns whether the IoU, rounded to float, is at least the threshold. An IoU of 3 / 10 thus equals 0.3f, as in
/// kernels that compute in float. Two equal boxes without area do not match.
POLYOP_HD inline bool Matches(const BoxOverlap& overlap, float threshold) {
  if (threshold <= 0) return true;
  return overlap.intersection > 0 && static_cast<float>(overlap.intersection / overlap.united) >= threshold;
}

}  // namespace polyop

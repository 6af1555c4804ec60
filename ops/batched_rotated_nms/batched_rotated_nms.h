#pragma once

#include "core/operator.h"
#include "families/boxes/detection_rule.h"

namespace polyop {

/// Suppression of rotated boxes in every class of every picture, with a fixed number of detections.
struct BatchedRotatedNms : DetectionRule {
  static constexpr const char* kName = "batched_rotated_nms";
  static constexpr Signature kSignature =
      "boxes: f32[B, N, *, 5], scores: f32[B, N, C] -> dets: f32[B, keep_topk, 6], labels: i32[B, keep_topk]";
  static constexpr NodeName kNodes[] = {"mmdeploy::TRTBatchedRotatedNMS"};
  static constexpr auto kAttributes = kDetectionAttributes;
  static constexpr Doc kDoc = {
      .summary =
          "Keeps the best rotated boxes of each class, and of these the best of a picture. Boxes are "
          "(centre x, centre y, width, height, angle in radians).",
      .semantics = kDetectionSemantics,
      .source = "MMDeploy's TRTBatchedRotatedNMS, after TensorRT's batchedNMSPlugin",
      .differences = "MMDeploy clips the angle too, and writes nothing when keep_topk is more than topk.",
      .not_portable =
          "No standard operator intersects rotated boxes; cut by their eight edges, all pairs of them would "
          "take hundreds of nodes, and the suppression a Loop of a turn for each box.",
  };
};

}  // namespace polyop

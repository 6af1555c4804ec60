// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/boxes/detection_rule.h"

namespace polyop {

/// Non-maximum suppression of rotated boxes per class and image, with a fixed number of detections.
struct BatchedRotatedNms : DetectionRule {
  static constexpr const char* kName = "batched_rotated_nms";
  static constexpr Signature kSignature =
      "boxes: f32[B, N, *, 5], scores: f32[B, N, C] -> dets: f32[B, keep_topk, 6], labels: i32[B, keep_topk]";
  static constexpr NodeName kNodes[] = {"mmdeploy::TRTBatchedRotatedNMS"};
  static constexpr auto kAttributes = kDetectionAttributes;
  static constexpr Doc kDoc = {
      .summary = R"(Non-maximum suppression per class: keeps the best rotated boxes of each class, then the best
          `keep_topk` of the image. Boxes are (centre x, centre y, width, height, angle in radians).)",
      .semantics = kDetectionSemantics,
      .source = "MMDeploy's TRTBatchedRotatedNMS, after TensorRT's batchedNMSPlugin",
      .differences = "MMDeploy also clips the angle, and writes nothing if `keep_topk` is greater than `topk`.",
      .not_portable = R"(No standard operator intersects rotated boxes. Clipping all pairs by their eight edges would
          take hundreds of nodes, and the suppression a Loop with one iteration per box.)",
  };
};

}  // namespace polyop

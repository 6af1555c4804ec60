// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/boxes/detection_rule.h"

namespace polyop {

/// Non-maximum suppression of axis-aligned boxes per class and image, with a fixed number of detections.
struct BatchedNms : DetectionRule {
  bool return_index = false;

  static constexpr const char* kName = "batched_nms";
  static constexpr Signature kSignature =
      "boxes: f32[B, N, *, 4], scores: f32[B, N, C] -> dets: f32[B, keep_topk, 5], labels: i32[B, keep_topk], "
      "index?: i32[B, keep_topk]";
  static constexpr NodeName kNodes[] = {"mmdeploy::TRTBatchedNMS"};
  static constexpr auto kAttributes = std::tuple_cat(
      kDetectionAttributes,
      std::tuple{
          Attr("return_index", &BatchedNms::return_index,
               R"(no effect: `index` is computed when the output is requested. It is a box's number; if each class has
               its own boxes, class * N + the number; -1 in unused rows)")});
  static constexpr Doc kDoc = {
      .summary = R"(Non-maximum suppression per class: keeps the best axis-aligned boxes of each class, then the best
          `keep_topk` of the image. Boxes are (x1, y1, x2, y2).)",
      .semantics = kDetectionSemantics,
      .source = "MMDeploy's TRTBatchedNMS, after TensorRT's batchedNMSPlugin",
      .differences = R"(MMDeploy writes nothing if `keep_topk` is greater than `topk`, and accepts at most 5120 boxes
          per class.)",
  };
};

}  // namespace polyop

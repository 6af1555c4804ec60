#pragma once

#include "core/operator.h"
#include "families/boxes/detection_rule.h"

namespace polyop {

/// Suppression of axis-aligned boxes in every class of every picture, with a fixed number of detections.
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
               "without effect: index is made when it is asked for. It is a box's number; with boxes for each class, "
               "class * N + its number; -1 in the rest")});
  static constexpr Doc kDoc = {
      .summary =
          "Keeps the best axis-aligned boxes of each class, and of these the best of a picture. Boxes are "
          "(x1, y1, x2, y2).",
      .semantics = kDetectionSemantics,
      .source = "MMDeploy's TRTBatchedNMS, after TensorRT's batchedNMSPlugin",
      .differences =
          "MMDeploy writes nothing when keep_topk is more than topk, and takes no more than 5120 boxes of a class.",
  };
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// Attributes and checks shared by the batched NMS operators of upright and of rotated boxes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>

#include "core/definition.h"

namespace polyop {

/// The base of an operator's parameters.
struct DetectionRule {
  int64_t background_label_id = -1;
  int64_t num_classes = -1;
  int64_t topk = -1;
  int64_t keep_topk = 100;
  float score_threshold = 0.0f;
  float iou_threshold = 0.5f;
  bool is_normalized = true;
  bool clip_boxes = true;

  /// Checks that 'boxes' has one box for all classes or one per class, and that 'scores' has `num_classes` classes.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &boxes = inputs[0].shape, &scores = inputs[1].shape;
    const int64_t classes = scores[2];
    if (num_classes >= 0 && num_classes != classes) {
      return InvalidArgument("'scores': expected num_classes = ", num_classes, " in dimension 2, got ", classes,
                             " (shape ", ToString(scores), ")");
    }
    if (boxes[2] != 1 && boxes[2] != classes) {
      return InvalidArgument("'boxes': expected 1 or C = ", classes, " in dimension 2, got ", boxes[2], " (shape ",
                             ToString(boxes), ")");
    }
    if (boxes[1] > INT32_MAX / std::max<int64_t>(classes, 1)) {
      return InvalidArgument("'scores': expected boxes times classes of at most 2147483647, got ", boxes[1], " x ",
                             classes);
    }
    return Status::Ok();
  }
};

inline constexpr std::tuple kDetectionAttributes = {
    Attr("background_label_id", &DetectionRule::background_label_id, "class to ignore; -1: none"),
    Attr("num_classes", &DetectionRule::num_classes, "number of classes of 'scores'; -1: not checked").AtLeast(-1),
    Attr("topk", &DetectionRule::topk, "candidates per class, those with the highest scores; 0 or less: all"),
    Attr("keep_topk", &DetectionRule::keep_topk, "detections per image, those with the highest scores")
        .AtLeast(0)
        .Required(),
    Attr("score_threshold", &DetectionRule::score_threshold, "boxes with a score at or below this are ignored"),
    Attr("iou_threshold", &DetectionRule::iou_threshold,
         "suppresses boxes whose IoU with a kept box of the same class exceeds this threshold")
        .Between(0, 1),
    Attr("is_normalized", &DetectionRule::is_normalized, "ignored, as in MMDeploy: extents never grow by a pixel"),
    Attr("clip_boxes", &DetectionRule::clip_boxes, "1: clips coordinates of detections, but not angles, to [0, 1]"),
};

inline constexpr const char* kDetectionSemantics =
    R"(Suppresses each class of each image separately, among the topk boxes with the highest scores above
    score_threshold. The kept boxes of all classes are sorted by descending score, ties by class, then by box index. The
    first keep_topk of them are returned: box and score in dets, class in labels. If there are fewer, the rest of dets
    is 0 and of labels -1. Boxes are shared by all classes or given per class (dimension 2 of boxes). A box with a NaN
    coordinate suppresses nothing; a NaN score is not above the threshold.)";

}  // namespace polyop

// What the batched suppressions of upright and of rotated boxes have in common: their attributes and checks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>

#include "core/definition.h"

namespace polyop {

/// The base of an operator's struct.
struct DetectionRule {
  int64_t background_label_id = -1;
  int64_t num_classes = -1;
  int64_t topk = -1;
  int64_t keep_topk = 100;
  float score_threshold = 0.0f;
  float iou_threshold = 0.5f;
  bool is_normalized = true;
  bool clip_boxes = true;

  /// 'boxes' has one box for all classes or one for each; 'scores' has as many classes as said.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &boxes = inputs[0].shape, &scores = inputs[1].shape;
    const int64_t classes = scores[2];
    if (num_classes >= 0 && num_classes != classes) {
      return InvalidArgument("'scores' has shape ", ToString(scores), ", wanted num_classes = ", num_classes,
                             " in dimension 2");
    }
    if (boxes[2] != 1 && boxes[2] != classes) {
      return InvalidArgument("'boxes' has shape ", ToString(boxes), ", wanted 1 or C = ", classes, " in dimension 2");
    }
    if (boxes[1] > INT32_MAX / std::max<int64_t>(classes, 1)) {
      return InvalidArgument("'scores' has shape ", ToString(scores), ": its indices must fit 32 bits");
    }
    return Status::Ok();
  }
};

inline constexpr std::tuple kDetectionAttributes = {
    Attr("background_label_id", &DetectionRule::background_label_id, "a class that is left out; -1: none"),
    Attr("num_classes", &DetectionRule::num_classes, "how many classes 'scores' has; -1: not checked").AtLeast(-1),
    Attr("topk", &DetectionRule::topk, "boxes of a class that take part, the best ones; 0 or less: all"),
    Attr("keep_topk", &DetectionRule::keep_topk, "detections of a picture, the best ones").AtLeast(0).Required(),
    Attr("score_threshold", &DetectionRule::score_threshold, "only boxes of a greater score take part"),
    Attr("iou_threshold", &DetectionRule::iou_threshold,
         "a box goes when its IoU with a kept one of its class is greater")
        .Between(0, 1),
    Attr("is_normalized", &DetectionRule::is_normalized, "without effect, as in MMDeploy: no extent gets a pixel more"),
    Attr("clip_boxes", &DetectionRule::clip_boxes, "coordinates of detections, not angles, are clipped to 0 … 1"),
};

inline constexpr const char* kDetectionSemantics =
    "Every class of every picture is suppressed by itself: its boxes above score_threshold, of these the topk best. "
    "What "
    "stays is sorted by falling score over all classes (of equal scores the lower class, then the lower box, comes "
    "first) and the keep_topk best are given: the box and its score, and its class. Where there are fewer, the rest of "
    "dets is 0 and of labels -1. Boxes are one for all classes or one for each (dimension 2 of boxes). A box with "
    "a NaN coordinate suppresses nothing; a NaN score is not above the threshold. ";

}  // namespace polyop

// What the batched suppressions of upright and of rotated boxes have in common: their attributes and checks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "core/attributes.h"
#include "core/status.h"
#include "core/tensor.h"

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

/// 'boxes' has one box for all classes or one for each; 'scores' has as many classes as said.
inline Status CheckDetectionInputs(const DetectionRule& rule, const Tensor<const float, 4>& boxes,
                                   const Tensor<const float, 3>& scores) {
  const int64_t classes = scores.dim(2);
  if (rule.num_classes >= 0 && rule.num_classes != classes) {
    return InvalidArgument("'scores' has shape ", ToString(scores.shape()), ", wanted num_classes = ", rule.num_classes,
                           " in dimension 2");
  }
  if (boxes.dim(2) != 1 && boxes.dim(2) != classes) {
    return InvalidArgument("'boxes' has shape ", ToString(boxes.shape()), ", wanted 1 or C = ", classes,
                           " in dimension 2");
  }
  if (boxes.dim(1) > INT32_MAX / std::max<int64_t>(classes, 1)) {
    return InvalidArgument("'scores' has shape ", ToString(scores.shape()), ": its indices must fit 32 bits");
  }
  return Status::Ok();
}

}  // namespace polyop

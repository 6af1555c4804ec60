// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/operator.h"
#include "ops/boxes/logit.h"

namespace polyop {

/// Non-maximum suppression over all classes of an image with a fixed number of detections; decodes boxes and scores.
struct EfficientNms {
  enum class Coding { kCorners, kCenterSize };
  float score_threshold = 0.25f;
  float iou_threshold = 0.5f;
  int64_t max_output_boxes = 100;
  int64_t background_class = -1;
  bool score_activation = false;
  Coding box_coding = Coding::kCorners;
  bool class_agnostic = false;
  bool return_detection_indices = false;

  static constexpr const char* kName = "efficient_nms";
  static constexpr Signature kSignatures[] = {
      "boxes: T[N, B, 4], scores: T[N, B, C], anchors?: T[A, B, 4] -> num_detections: i32[N, 1], "
      "detection_boxes: T[N, max_output_boxes, 4], detection_scores: T[N, max_output_boxes], "
      "detection_classes: i32[N, max_output_boxes], detection_indices?: i32[N, max_output_boxes]",
      "boxes: T[N, B, G, 4], scores: T[N, B, C], anchors?: T[A, B, 4] -> num_detections: i32[N, 1], "
      "detection_boxes: T[N, max_output_boxes, 4], detection_scores: T[N, max_output_boxes], "
      "detection_classes: i32[N, max_output_boxes], detection_indices?: i32[N, max_output_boxes]",
  };
  static constexpr NodeName kNodes[] = {
      NodeName("polyop::EfficientNMS_TRT"),
      NodeName("TRT::EfficientNMS_TRT"),
      NodeName("::EfficientNMS_TRT"),
      NodeName("polyop::EfficientNMSX_TRT").Preset("return_detection_indices", "1"),
      NodeName("TRT::EfficientNMSX_TRT").Preset("return_detection_indices", "1"),
      NodeName("::EfficientNMSX_TRT").Preset("return_detection_indices", "1"),
  };
  static constexpr std::tuple kAttributes = {
      Attr("score_threshold", &EfficientNms::score_threshold, "minimum score of a box").AtLeast(0).Required(),
      Attr("iou_threshold", &EfficientNms::iou_threshold,
           "suppresses boxes whose IoU with a kept box is at least this threshold")
          .GreaterThan(0)
          .Required(),
      Attr("background_class", &EfficientNms::background_class, "class to ignore; -1: none").Required(),
      Attr("max_output_boxes", &EfficientNms::max_output_boxes, "number of detections per image").AtLeast(1).Required(),
      Attr("score_activation", &EfficientNms::score_activation, "scores are logits: the sigmoid is applied to them")
          .Required(),
      Attr("box_coding", &EfficientNms::box_coding,
           "coding of boxes and anchors: (x1, y1, x2, y2) or (x, y, width, height)")
          .Codes("corners", "center_size")
          .Required(),
      Attr("class_agnostic", &EfficientNms::class_agnostic, "boxes of different classes suppress each other, too"),
      Attr("return_detection_indices", &EfficientNms::return_detection_indices,
           "no effect: `detection_indices` is computed when the output is requested"),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Keeps the best boxes of an image over all classes, in a fixed number of rows, like TensorRT's
          EfficientNMS.)",
      .semantics = R"(Every class of every box is a candidate with a score. Candidates with a score of at least
          `score_threshold`, except those of `background_class`, are visited in descending order of the score; of equal
          scores, the lower box * C + class comes first. A candidate is kept unless its IoU with a kept one of its class
          is at least `iou_threshold`, until `max_output_boxes` are kept. `boxes` is [N, B, 4] or [N, B, 1, 4], with one
          box for all classes, or [N, B, C, 4], with one per class. The IoU is computed with reversed corners swapped
          and compared in fp64; it is 0 if a coordinate is NaN or infinite. `detection_boxes` are corners, neither
          clipped nor swapped; `detection_indices` are the numbers of the boxes in their image. Rows from
          `num_detections` on are 0. With `score_activation`, the order is that of the logits, and a threshold of 0
          admits all of them. A NaN score is ignored. With `anchors`, corners are the sum of box and anchor, both with
          reversed corners swapped, and centre and size are (x * aw + ax, y * ah + ay, exp(w) * aw, exp(h) * ah). Boxes
          are computed in fp32.)",
      .source = "TensorRT's efficientNMSPlugin; with detection_indices, the EfficientNMSX of YOLO segmentation exports",
      .differences = R"(The plugin visits only the best 5000 candidates, orders equal scores non-deterministically,
          computes fp16 boxes in fp16, and may return rejected boxes for thresholds below 0.007.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &boxes = inputs[0].shape, &scores = inputs[1].shape;
    const int64_t classes = scores[2];
    if (boxes.rank() == 4 && boxes[2] != 1 && boxes[2] != classes) {
      return InvalidArgument("'boxes': expected 1 or C = ", classes, " in dimension 2, got ", boxes[2], " (shape ",
                             ToString(boxes), ")");
    }
    if (boxes[1] > INT32_MAX / std::max<int64_t>(classes, 1)) {
      return InvalidArgument("'scores': expected at most 2147483647 scores per image, got shape ", ToString(scores));
    }
    const AnyTensor* const anchors = GivenInput(inputs, 2);
    if (anchors != nullptr && anchors->shape[0] != 1 && anchors->shape[0] != boxes[0]) {
      return InvalidArgument("'anchors': expected 1 or N = ", boxes[0], " in dimension 0, got ", anchors->shape[0],
                             " (shape ", ToString(anchors->shape), ")");
    }
    return Status::Ok();
  }

  /// Returns the threshold for `scores`: a logit with `score_activation`, and NaN if no score can pass.
  float MinScore() const { return score_activation ? MinLogit(score_threshold) : score_threshold; }
};

}  // namespace polyop

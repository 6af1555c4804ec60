#pragma once

#include <algorithm>

#include "core/operator.h"
#include "families/boxes/logit.h"

namespace polyop {

/// Suppression over all classes of a picture with a fixed number of detections, decoding boxes and scores on the way.
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
      Attr("score_threshold", &EfficientNms::score_threshold, "only scores of at least this take part")
          .AtLeast(0)
          .Required(),
      Attr("iou_threshold", &EfficientNms::iou_threshold, "a box goes when its IoU with a kept one is at least this")
          .GreaterThan(0)
          .Required(),
      Attr("background_class", &EfficientNms::background_class, "a class that is left out; -1: none").Required(),
      Attr("max_output_boxes", &EfficientNms::max_output_boxes, "detections of a picture").AtLeast(1).Required(),
      Attr("score_activation", &EfficientNms::score_activation, "scores are logits: their sigmoid is what is meant")
          .Required(),
      Attr("box_coding", &EfficientNms::box_coding, "boxes and anchors are (x1, y1, x2, y2), or (x, y, width, height)")
          .Codes("corners", "center_size")
          .Required(),
      Attr("class_agnostic", &EfficientNms::class_agnostic, "boxes of other classes suppress, too"),
      Attr("return_detection_indices", &EfficientNms::return_detection_indices,
           "without effect: detection_indices are made when they are asked for"),
  };
  static constexpr Doc kDoc = {
      .summary = "Keeps a picture's best boxes over all classes, a fixed number of rows, as TensorRT's EfficientNMS.",
      .semantics =
          "Every class of every box is an element with a score. Those of at least score_threshold, but for "
          "background_class, are visited by falling score (of equal ones the lower box * C + class first); one is kept "
          "unless its IoU with a kept one of its class is at least iou_threshold, until max_output_boxes are. Boxes "
          "are "
          "[N, B, 4] or [N, B, 1, 4], one for all classes, or [N, B, C, 4], one for each. The IoU takes reversed "
          "corners in order; "
          "it is decided in double precision, and 0 where a coordinate is NaN or infinite. detection_boxes are "
          "corners, neither clipped nor put in order; detection_indices are the boxes' numbers in their picture. Rows "
          "from num_detections on are 0. With score_activation the order is that of the logits, and a threshold of 0 "
          "admits all. A NaN score takes no part. With `anchors`, corners are the sum of box and anchor, each put in "
          "order before, and centre and size are (x * aw + ax, y * ah + ay, exp(w) * aw, exp(h) * ah). Boxes are "
          "computed in float.",
      .source = "TensorRT's efficientNMSPlugin; with detection_indices, the EfficientNMSX of YOLO segmentation exports",
      .differences =
          "The plugin visits the best 5000 elements alone, orders equal scores by chance, computes fp16 boxes in fp16, "
          "and for thresholds below 0.007 may give boxes that it rejected.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &boxes = inputs[0].shape, &scores = inputs[1].shape;
    const int64_t classes = scores[2];
    if (boxes.rank() == 4 && boxes[2] != 1 && boxes[2] != classes) {
      return InvalidArgument("'boxes' has shape ", ToString(boxes), ", wanted 1 or C = ", classes, " in dimension 2");
    }
    if (boxes[1] > INT32_MAX / std::max<int64_t>(classes, 1)) {
      return InvalidArgument("'scores' has shape ", ToString(scores), ": its indices must fit 32 bits");
    }
    const AnyTensor* const anchors = GivenInput(inputs, 2);
    if (anchors != nullptr && anchors->shape[0] != 1 && anchors->shape[0] != boxes[0]) {
      return InvalidArgument("'anchors' has shape ", ToString(anchors->shape), ", wanted 1 or N = ", boxes[0],
                             " in dimension 0");
    }
    return Status::Ok();
  }

  /// What 'scores' are compared with: NaN if no score passes.
  float LeastScore() const { return score_activation ? LeastLogit(score_threshold) : score_threshold; }
};

}  // namespace polyop

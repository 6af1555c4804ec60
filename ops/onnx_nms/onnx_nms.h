#pragma once

#include "core/host_device.h"
#include "core/operator.h"

namespace polyop {

/// NonMaxSuppression as ONNX has it: of every class of every picture, as many rows as boxes stay.
struct OnnxNms {
  bool center_point_box = false;

  static constexpr const char* kName = "onnx_nms";
  static constexpr Signature kSignature =
      "boxes: f32[B, N, 4], scores: f32[B, C, N], max_output_boxes_per_class?: i64[], iou_threshold?: f32[], "
      "score_threshold?: f32[] -> selected_indices: i64[K<=B * C * N, 3]";
  static constexpr NodeName kNodes[] = {NodeName("polyop::NonMaxSuppression").Mirror(10).Mirror(11)};
  static constexpr std::tuple kAttributes = {
      Attr("center_point_box", &OnnxNms::center_point_box,
           "boxes are (centre x, centre y, width, height); else two opposite corners (y1, x1, y2, x2)"),
  };
  static constexpr Doc kDoc = {
      .summary = "ONNX's NonMaxSuppression: the boxes that stay of every class of every picture.",
      .semantics =
          "The result holds rows (picture, class, box), in the order of pictures, classes and falling scores; of equal "
          "scores the lower index comes first, NaN comes last. A box is suppressed by a kept box of a higher score "
          "when "
          "their IoU, found in float, is greater than iou_threshold (0 if left out), which lies within [0, 1]. Corners "
          "are put in order; a box without an area, or with NaN in it, suppresses nothing and is not suppressed. Only "
          "boxes of a score greater than score_threshold take part, all if it is left out. At most "
          "max_output_boxes_per_class boxes stay of a class: none if it is left out, 0 or negative.",
      .source = "ONNX's operators, NonMaxSuppression of opsets 10 and 11",
      .differences =
          "nms, which has MMCV's batched form, gives rows of -1 behind the others, takes corners as they are and "
          "decides in double precision.",
  };
};

/// What a kernel decides by; an input that was left out gives its default.
struct OnnxNmsRule {
  int64_t most = 0;
  float iou_threshold = 0;
  bool all = true;  // else only scores above score_threshold
  float score_threshold = 0;

  Status Check() const {
    if (iou_threshold >= 0 && iou_threshold <= 1) return Status::Ok();
    return InvalidArgument("'iou_threshold' is ", iou_threshold, ", wanted a number in [0, 1]");
  }
};

/// The corners (low, low, high, high) of a box.
POLYOP_HD inline void OrderedCorners(const float* box, bool center_point_box, float corners[4]) {
  for (int k = 0; k < 2; ++k) {
    const float a = box[k], b = box[k + 2];
    corners[k] = center_point_box ? a - b / 2 : a >= b ? b : a;
    corners[k + 2] = center_point_box ? a + b / 2 : a >= b ? a : b;
  }
}

}  // namespace polyop

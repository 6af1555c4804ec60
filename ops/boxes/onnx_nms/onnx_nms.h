// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/host_device.h"
#include "core/operator.h"

namespace polyop {

/// ONNX's NonMaxSuppression, of every class of every image; the number of rows is the number of kept boxes.
struct OnnxNms {
  bool center_point_box = false;

  static constexpr const char* kName = "onnx_nms";
  static constexpr Signature kSignature =
      "boxes: f32[B, N, 4], scores: f32[B, C, N], max_output_boxes_per_class?: i64[], iou_threshold?: f32[], "
      "score_threshold?: f32[] -> selected_indices: i64[K<=B * C * N, 3]";
  static constexpr NodeName kNodes[] = {NodeName("polyop::NonMaxSuppression").Mirror(10).Mirror(11)};
  static constexpr std::tuple kAttributes = {
      Attr("center_point_box", &OnnxNms::center_point_box,
           "1: boxes are (centre x, centre y, width, height); 0: two opposite corners (y1, x1, y2, x2)"),
  };
  static constexpr Doc kDoc = {
      .summary = "ONNX's NonMaxSuppression: the boxes that are kept in every class of every image.",
      .semantics = R"(selected_indices holds rows (image, class, box), ordered by image, class and descending score;
          among equal scores the lower index comes first, and NaN comes last. A kept box suppresses boxes of lower
          score if their IoU, computed in float, is greater than iou_threshold, which must be in [0, 1] and defaults
          to 0. Only boxes with a score greater than score_threshold take part; if it is omitted, all do. At most
          max_output_boxes_per_class boxes are kept in each class; if it is omitted, 0 or negative, none are.

          Corners are reordered if necessary. A box without area, or one that contains NaN, suppresses nothing and
          is not suppressed.)",
      .source = "ONNX's operators, NonMaxSuppression of opsets 10 and 11",
      .differences = R"(Unlike this operator, nms, whose batched form is MMCV's, pads its result with rows of -1,
          uses corners as they are and decides in double precision.)",
  };
};

/// The inputs that control the suppression; omitted inputs have their defaults.
struct OnnxNmsRule {
  int64_t max_boxes = 0;
  float iou_threshold = 0;
  bool all = true;  // false: only scores above score_threshold take part
  float score_threshold = 0;

  Status Check() const {
    if (iou_threshold >= 0 && iou_threshold <= 1) return Status::Ok();
    return InvalidArgument("'iou_threshold': expected a number in [0, 1], got ", iou_threshold);
  }
};

/// Computes the corners (low, low, high, high) of a box.
POLYOP_HD inline void OrderedCorners(const float* box, bool center_point_box, float corners[4]) {
  for (int k = 0; k < 2; ++k) {
    const float a = box[k], b = box[k + 2];
    corners[k] = center_point_box ? a - b / 2 : a >= b ? b : a;
    corners[k + 2] = center_point_box ? a + b / 2 : a >= b ? a : b;
  }
}

}  // namespace polyop

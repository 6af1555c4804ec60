// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "core/operator.h"

namespace polyop {

/// Greedy non-maximum suppression of axis-aligned boxes, of one set or of every class of every image.
struct Nms {
  float iou_threshold = 0.5f;
  int64_t offset = 0;
  float score_threshold = -std::numeric_limits<float>::infinity();
  int64_t max_output_boxes_per_class = 0;
  bool center_point_box = false;

  static constexpr const char* kName = "nms";
  static constexpr Signature kSignatures[] = {
      "boxes: f32[N, 4], scores: f32[N] -> keep: i64[K<=N]",
      // A class has max_output_boxes_per_class rows; if that is 0, it has a row for each box.
      "boxes: f32[B, N, 4], scores: f32[B, C, N] -> selected: "
      "i32[B * C * min(N, max_output_boxes_per_class + N * max(1 - max_output_boxes_per_class, 0)), 3]",
  };
  static constexpr NodeName kNodes[] = {"mmcv::NonMaxSuppression"};
  static constexpr std::tuple kAttributes = {
      Attr("iou_threshold", &Nms::iou_threshold, "a kept box suppresses boxes whose IoU with it exceeds this threshold")
          .Between(0, 1),
      Attr("offset", &Nms::offset, "added to every width and height: 1 if (x2, y2) is the last pixel").Between(0, 1),
      Attr("score_threshold", &Nms::score_threshold, "only boxes with a score greater than this take part")
          .MayBeInfinite(),
      Attr("max_output_boxes_per_class", &Nms::max_output_boxes_per_class,
           "maximum number of boxes kept in each class; 0: no limit. Must be 0 for boxes of rank 2")
          .AtLeast(0),
      Attr("center_point_box", &Nms::center_point_box, "boxes are (centre x, centre y, width, height)"),
  };
  static constexpr Doc kDoc = {
      .summary = "Greedy non-maximum suppression: keeps the highest-scoring box of every group of overlapping boxes.",
      .semantics = R"(Boxes are (x1, y1, x2, y2). For boxes [N, 4], keep holds the indices of the kept boxes by
          descending score; among equal scores the lower index comes first. For boxes [B, N, 4] and scores [B, C,
          N], selected holds rows (image, class, box), ordered by image, class and descending score, followed by
          rows of -1.

          A kept box suppresses boxes of lower score if their intersection is greater than iou_threshold times their
          union. Borderline cases are decided in double precision, so every instruction set keeps the same boxes. A
          NaN score counts as the lowest score. A box with NaN or reversed coordinates suppresses nothing and is
          never suppressed.)",
      .source =
          "`torchvision.ops.nms`, and `mmcv.ops.nms` with `offset`; the batched form is that of MMCV's TensorRT plugin",
      .differences = R"(ONNX's NonMaxSuppression reorders reversed corners; here boxes are used as they are, as in
          MMCV. MMCV's plugin returns positions in the sorted order instead of box indices.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (max_output_boxes_per_class == 0 || inputs[0].shape.rank() != 2) return Status::Ok();
    return InvalidArgument("attribute 'max_output_boxes_per_class': expected 0 for 'boxes' of rank 2, got ",
                           max_output_boxes_per_class);
  }
};

}  // namespace polyop

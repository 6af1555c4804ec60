#pragma once

#include <limits>

#include "core/operator.h"

namespace polyop {

/// Greedy non-maximum suppression of axis-aligned boxes: of one set, or of every class of every picture.
struct Nms {
  float iou_threshold = 0.5f;
  int64_t offset = 0;
  float score_threshold = -std::numeric_limits<float>::infinity();
  int64_t max_output_boxes_per_class = 0;
  bool center_point_box = false;

  static constexpr const char* kName = "nms";
  static constexpr Signature kSignatures[] = {
      "boxes: f32[N, 4], scores: f32[N] -> keep: i64[K<=N]",
      // As many rows for a class as max_output_boxes_per_class says; where it is 0, as many as there are boxes.
      "boxes: f32[B, N, 4], scores: f32[B, C, N] -> selected: "
      "i32[B * C * min(N, max_output_boxes_per_class + N * max(1 - max_output_boxes_per_class, 0)), 3]",
  };
  static constexpr NodeName kNodes[] = {"mmcv::NonMaxSuppression"};
  static constexpr std::tuple kAttributes = {
      Attr("iou_threshold", &Nms::iou_threshold, "a box goes when its IoU with a kept one is greater").Between(0, 1),
      Attr("offset", &Nms::offset, "added to every width and height: 1 where x2, y2 are the last pixel").Between(0, 1),
      Attr("score_threshold", &Nms::score_threshold, "only boxes of a greater score take part").MayBeInfinite(),
      Attr("max_output_boxes_per_class", &Nms::max_output_boxes_per_class,
           "boxes kept of each class; 0: all. For boxes of one set (rank 2) it must be 0")
          .AtLeast(0),
      Attr("center_point_box", &Nms::center_point_box, "boxes are (centre x, centre y, width, height)"),
  };
  static constexpr Doc kDoc = {
      .summary = "Keeps the best box of every group of overlapping ones.",
      .semantics =
          "Boxes are (x1, y1, x2, y2). For boxes [N, 4] the result holds the indices of the kept boxes by falling "
          "score; of equal "
          "scores the lower index comes first. For boxes [B, N, 4] and scores [B, C, N] it holds rows (picture, class, "
          "box), in the order of pictures, classes and falling scores, and behind them rows of -1. A box is suppressed "
          "by a kept box of a higher score when "
          "their intersection is greater than iou_threshold times their union; borderline cases are decided in double "
          "precision, so every instruction set keeps the same boxes. A NaN score counts as the lowest; a box with a "
          "NaN or reversed coordinate suppresses nothing and is never suppressed.",
      .source =
          "`torchvision.ops.nms`, and `mmcv.ops.nms` with `offset`; the batched form is that of MMCV's TensorRT plugin",
      .differences =
          "ONNX's NonMaxSuppression puts reversed corners in order; here boxes are taken as they are, as MMCV does. "
          "MMCV's plugin gave the place in the sorted order instead of the box.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (max_output_boxes_per_class == 0 || inputs[0].shape.rank() != 2) return Status::Ok();
    return InvalidArgument("attribute 'max_output_boxes_per_class' is ", max_output_boxes_per_class,
                           ", wanted 0 for 'boxes' of rank 2");
  }
};

}  // namespace polyop

#pragma once

#include "core/operator.h"

namespace polyop {

/// RoI max pooling: the largest pixel of each bin of a box.
struct RoiPool {
  int64_t output_height = 1;
  int64_t output_width = 1;
  float spatial_scale = 1.0f;
  bool rounded = true;

  static constexpr const char* kName = "roi_pool";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], rois: T[R, 5] -> output: T[R, C, output_height, output_width], "
      "argmax: i32[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {
      NodeName("polyop::RoIPool"),
      NodeName("mmcv::MMCVRoIPool").Preset("rounded", "0"),
  };
  static constexpr std::tuple kAttributes = {
      Attr("output_height", &RoiPool::output_height, "bins of a box from top to bottom")
          .Between(1, 4096)
          .Also("pooled_height"),
      Attr("output_width", &RoiPool::output_width, "bins of a box from left to right")
          .Between(1, 4096)
          .Also("pooled_width"),
      Attr("spatial_scale", &RoiPool::spatial_scale, "from the boxes' coordinates to the input's pixels")
          .GreaterThan(0),
      Attr("rounded", &RoiPool::rounded, "whether scaled corners are rounded to whole pixels, as torchvision does"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each box to a fixed grid by the largest pixel of each bin (Fast R-CNN).",
      .semantics =
          "A roi is (batch index, x1, y1, x2, y2), and holds its last pixel. Rounded, both corners are scaled and "
          "rounded, halves away from zero, and a box is at least one pixel large; else it goes from x1 * scale to "
          "(x2 + 1) * scale, and one of no extent has empty bins. Bin b of n takes the pixels from floor(b * extent / "
          "n) to before ceil((b + 1) * extent / n), from the box's start, that lie in the picture: neighbours may "
          "share some. argmax is y * W + x of the pixel taken, of equal ones the first. NaN and -infinity are passed "
          "over; a bin of these alone, an empty one, and all of a roi with NaN or infinity give 0 and argmax -1. A "
          "batch index that is not a whole number in range is an error. Rounded bins are found in float, as "
          "torchvision and ONNX Runtime find them, others in double.",
      .source =
          "Girshick, Fast R-CNN, 2015; `torchvision.ops.roi_pool`, ONNX's MaxRoiPool; not rounded: "
          "`mmcv.ops.roi_pool`",
      .differences = "MMCV finds bins in float, and exports its operator as MaxRoiPool, whose corners are rounded.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& shape = inputs[0].shape;
    if (shape[3] == 0 || shape[2] <= INT32_MAX / shape[3]) return Status::Ok();
    return InvalidArgument("'input' has shape ", ToString(shape), ": pixels of a picture must fit 32 bits");
  }
};

}  // namespace polyop

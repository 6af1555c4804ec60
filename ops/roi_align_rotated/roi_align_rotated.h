#pragma once

#include "core/operator.h"

namespace polyop {

/// RoIAlign of rotated boxes.
struct RoiAlignRotated {
  int64_t output_height = 1;
  int64_t output_width = 1;
  float spatial_scale = 1.0f;
  int64_t sampling_ratio = 0;
  bool aligned = true;
  bool clockwise = false;

  static constexpr const char* kName = "roi_align_rotated";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], rois: T[R, 6] -> output: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVRoIAlignRotated", "mmdeploy::MMCVRoIAlignRotated"};
  static constexpr std::tuple kAttributes = {
      Attr("output_height", &RoiAlignRotated::output_height, "bins along a box's height")
          .Between(1, 4096)
          .Also("pooled_height"),
      Attr("output_width", &RoiAlignRotated::output_width, "bins along a box's width")
          .Between(1, 4096)
          .Also("pooled_width"),
      Attr("spatial_scale", &RoiAlignRotated::spatial_scale, "from the boxes' coordinates to the input's pixels")
          .GreaterThan(0),
      Attr("sampling_ratio", &RoiAlignRotated::sampling_ratio,
           "samples per bin and axis; 0 or less: one for each pixel, rounded up")
          .AtMost(1024)
          .Also("sample_num"),
      Attr("aligned", &RoiAlignRotated::aligned,
           "boxes are shifted by half a pixel; else they are at least one pixel large"),
      Attr("clockwise", &RoiAlignRotated::clockwise, "whether the angle turns clockwise"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each rotated box to a fixed grid by bilinear samples.",
      .semantics =
          "A roi is (batch index, centre x, centre y, width, height, angle in radians). Samples lie on a grid in the "
          "box's own axes; the rest is as in "
          "roi_align's average. A box of negative extent, or one with a NaN or infinite component, has no samples when "
          "sampling_ratio is 0 "
          "(NaN and infinity: for any): its bins are 0. A batch index that is not a whole number in range is an error.",
      .source =
          "`mmcv.ops.roi_align_rotated`; Ding et al., Learning RoI Transformer for Oriented Object Detection, 2019",
      .differences = "MMCV refuses negative extents when aligned.",
  };
};

}  // namespace polyop

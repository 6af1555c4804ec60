// SPDX-License-Identifier: Apache-2.0
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
      Attr("output_height", &RoiAlignRotated::output_height, "number of bins along the height of a box")
          .Between(1, 4096)
          .Also("pooled_height"),
      Attr("output_width", &RoiAlignRotated::output_width, "number of bins along the width of a box")
          .Between(1, 4096)
          .Also("pooled_width"),
      Attr("spatial_scale", &RoiAlignRotated::spatial_scale, "scale from box coordinates to pixels of the input")
          .GreaterThan(0),
      Attr("sampling_ratio", &RoiAlignRotated::sampling_ratio,
           "samples per bin and axis; 0 or less: one per pixel, rounded up")
          .AtMost(1024)
          .Also("sample_num"),
      Attr("aligned", &RoiAlignRotated::aligned,
           "1: shift boxes by half a pixel; 0: enlarge boxes to at least one pixel"),
      Attr("clockwise", &RoiAlignRotated::clockwise, "1: angles are clockwise; 0: counter-clockwise"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each rotated box to a fixed grid by bilinear samples.",
      .semantics = R"(A RoI is (batch index, centre x, centre y, width, height, angle in radians). Samples lie on a
          grid along the box's own axes. Otherwise it works like roi_align in mode avg. If sampling_ratio is 0, a
          box of negative extent has no samples: its bins are 0. For any sampling_ratio, the bins of a box with a
          NaN or infinite component are 0. It is an error if a batch index is not an integer in range.)",
      .source =
          "`mmcv.ops.roi_align_rotated`; Ding et al., Learning RoI Transformer for Oriented Object Detection, 2019",
      .differences = "MMCV rejects negative extents if aligned is set.",
  };
};

}  // namespace polyop

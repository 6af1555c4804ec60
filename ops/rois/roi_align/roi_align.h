// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// RoIAlign: a fixed grid of bins over each box, each the average (or maximum) of bilinear samples.
struct RoiAlign {
  enum class Mode { kAvg, kMax };
  int64_t output_height = 1;
  int64_t output_width = 1;
  float spatial_scale = 1.0f;
  int64_t sampling_ratio = 0;
  Mode mode = Mode::kAvg;
  bool aligned = true;

  static constexpr const char* kName = "roi_align";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], rois: T[R, 5] -> output: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVRoiAlign", "mmdeploy::MMCVRoiAlign"};
  static constexpr std::tuple kAttributes = {
      Attr("output_height", &RoiAlign::output_height, "number of bins along the y axis")
          .Between(1, 4096)
          .Also("aligned_height", "pooled_height"),
      Attr("output_width", &RoiAlign::output_width, "number of bins along the x axis")
          .Between(1, 4096)
          .Also("aligned_width", "pooled_width"),
      Attr("spatial_scale", &RoiAlign::spatial_scale, "scale from box coordinates to pixels of the input")
          .GreaterThan(0),
      Attr("sampling_ratio", &RoiAlign::sampling_ratio,
           "samples per bin and axis; 0 or less: one per pixel, rounded up")
          .AtMost(1024),
      Attr("mode", &RoiAlign::mode, "how to pool the samples of a bin").OneOf("avg", "max").Also("pool_mode"),
      Attr("aligned", &RoiAlign::aligned, "1: shift boxes by half a pixel; 0: enlarge boxes to at least one pixel"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each box to a fixed grid by bilinear samples (Mask R-CNN).",
      .semantics = R"(A RoI is (batch index, x1, y1, x2, y2). A sample exactly at -1 or at the extent of the image
          is inside and has the value of the border; a sample beyond is 0. `avg` divides by the number of all
          samples, including those outside. `max` is the largest bilinear sample; samples outside count as 0, NaN is
          ignored, and a bin without samples is 0.

          If sampling_ratio is 0, a box that is reversed has no samples: its bins are 0. For any sampling_ratio, the
          bins of a box with NaN or infinite coordinates are 0. It is an error if a batch index is not an integer in
          range. Sampling positions are computed in double precision, sums in float.)",
      .source = "He et al., Mask R-CNN, 2017; `torchvision.ops.roi_align`, `mmcv.ops.roi_align`",
      .differences = R"(MMCV's maximum of a bin without samples is -10000. In mode max, ONNX Runtime's RoiAlign
          takes the maximum of the weighted corners instead of the samples.)",
  };
};

}  // namespace polyop

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
      Attr("output_height", &RoiAlign::output_height, "bins of a box from top to bottom")
          .Between(1, 4096)
          .Also("aligned_height", "pooled_height"),
      Attr("output_width", &RoiAlign::output_width, "bins of a box from left to right")
          .Between(1, 4096)
          .Also("aligned_width", "pooled_width"),
      Attr("spatial_scale", &RoiAlign::spatial_scale, "from the boxes' coordinates to the input's pixels")
          .GreaterThan(0),
      Attr("sampling_ratio", &RoiAlign::sampling_ratio,
           "samples per bin and axis; 0 or less: one for each pixel, rounded up")
          .AtMost(1024),
      Attr("mode", &RoiAlign::mode, "how the samples of a bin are pooled").OneOf("avg", "max").Also("pool_mode"),
      Attr("aligned", &RoiAlign::aligned, "boxes are shifted by half a pixel; else they are at least one pixel large"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each box to a fixed grid by bilinear samples (Mask R-CNN).",
      .semantics =
          "A roi is (batch index, x1, y1, x2, y2). A sample exactly at -1 or at the extent is inside and takes the "
          "border's "
          "value, one beyond is 0. `avg` divides by all samples, those outside too. `max` is the largest bilinear "
          "sample, "
          "those outside count as 0, NaN is passed over, a bin without samples is 0. A box that is reversed, or whose "
          "coordinates are NaN or infinite, has no samples when sampling_ratio is 0: its bins are 0 (NaN and infinity: "
          "for "
          "any sampling_ratio). A batch index that is not a whole number in range is an error. Sampling positions are "
          "computed in double precision, sums in float.",
      .source = "He et al., Mask R-CNN, 2017; `torchvision.ops.roi_align`, `mmcv.ops.roi_align`",
      .differences =
          "MMCV's maximum of a bin without samples is -10000. ONNX Runtime's RoiAlign in mode max takes the maximum of "
          "weighted corners instead of samples.",
  };
};

}  // namespace polyop

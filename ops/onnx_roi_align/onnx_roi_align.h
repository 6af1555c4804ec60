#pragma once

#include "core/operator.h"

namespace polyop {

/// RoiAlign as ONNX has it: roi_align with the pictures' indices as an input of their own.
struct OnnxRoiAlign {
  enum class Mode { kAvg, kMax };
  enum class Transformation { kHalfPixel, kOutputHalfPixel };
  Transformation coordinate_transformation_mode = Transformation::kHalfPixel;
  Mode mode = Mode::kAvg;
  int64_t output_height = 1;
  int64_t output_width = 1;
  int64_t sampling_ratio = 0;
  float spatial_scale = 1.0f;

  static constexpr const char* kName = "onnx_roi_align";
  static constexpr Signature kSignature =
      "X: T[N, C, H, W], rois: T[R, 4], batch_indices: i64[R] -> Y: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {
      NodeName("polyop::RoiAlign")
          .Mirror(10, "coordinate_transformation_mode", "output_half_pixel")
          .Mirror(16)
          .Mirror(22),
  };
  static constexpr std::tuple kAttributes = {
      Attr("coordinate_transformation_mode", &OnnxRoiAlign::coordinate_transformation_mode,
           "half_pixel: boxes are shifted by half a pixel; output_half_pixel: they are at least one pixel large")
          .OneOf("half_pixel", "output_half_pixel"),
      Attr("mode", &OnnxRoiAlign::mode, "how the samples of a bin are pooled").OneOf("avg", "max"),
      Attr("output_height", &OnnxRoiAlign::output_height, "bins of a box from top to bottom").Between(1, 4096),
      Attr("output_width", &OnnxRoiAlign::output_width, "bins of a box from left to right").Between(1, 4096),
      Attr("sampling_ratio", &OnnxRoiAlign::sampling_ratio,
           "samples per bin and axis; 0 or less: one for each pixel, rounded up")
          .AtMost(1024),
      Attr("spatial_scale", &OnnxRoiAlign::spatial_scale, "from the boxes' coordinates to the input's pixels")
          .GreaterThan(0),
  };
  static constexpr Doc kDoc = {
      .summary = "ONNX's RoiAlign: roi_align with the pictures' indices as an input of their own.",
      .semantics =
          "A roi is (x1, y1, x2, y2); `batch_indices` are numbers of pictures, others are an error. All else is as in "
          "roi_align, whose `aligned` is half_pixel.",
      .source = "ONNX's operators, RoiAlign of opsets 10, 16 and 22; He et al., Mask R-CNN, 2017",
      .differences =
          "ONNX Runtime's mode max takes the maximum of weighted corners; here it is that of bilinear samples, as the "
          "documents say. Before opset 16 there was no coordinate_transformation_mode: output_half_pixel was meant.",
  };

  /// ONNX Runtime's maximum is another one.
  bool LeaveToStandard(std::span<const AnyTensor>) const { return mode == Mode::kMax; }
  bool aligned() const { return coordinate_transformation_mode == Transformation::kHalfPixel; }
};

}  // namespace polyop

#pragma once

#include "core/operator.h"

namespace polyop {

/// ONNX's RoiAlign: roi_align with the batch indices as a separate input.
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
           "half_pixel: shift boxes by half a pixel; output_half_pixel: enlarge boxes to at least one pixel")
          .OneOf("half_pixel", "output_half_pixel"),
      Attr("mode", &OnnxRoiAlign::mode, "how to pool the samples of a bin").OneOf("avg", "max"),
      Attr("output_height", &OnnxRoiAlign::output_height, "number of bins along the y axis").Between(1, 4096),
      Attr("output_width", &OnnxRoiAlign::output_width, "number of bins along the x axis").Between(1, 4096),
      Attr("sampling_ratio", &OnnxRoiAlign::sampling_ratio,
           "samples per bin and axis; 0 or less: one per pixel, rounded up")
          .AtMost(1024),
      Attr("spatial_scale", &OnnxRoiAlign::spatial_scale, "scale from box coordinates to pixels of the input")
          .GreaterThan(0),
  };
  static constexpr Doc kDoc = {
      .summary = "ONNX's RoiAlign: roi_align with the batch indices as a separate input.",
      .semantics = R"(A RoI is (x1, y1, x2, y2). It is an error if one of `batch_indices` is not in [0, N).
          Otherwise it works like roi_align, whose `aligned` corresponds to half_pixel.)",
      .source = "ONNX's operators, RoiAlign of opsets 10, 16 and 22; He et al., Mask R-CNN, 2017",
      .differences = R"(In mode max, ONNX Runtime takes the maximum of the weighted corners. Here it is the maximum
          of the bilinear samples, as in ONNX's documentation. Nodes of opsets before 16 have no
          coordinate_transformation_mode and mean output_half_pixel.)",
  };

  /// ONNX Runtime's maximum differs.
  bool LeaveToStandard(std::span<const AnyTensor>) const { return mode == Mode::kMax; }
  bool aligned() const { return coordinate_transformation_mode == Transformation::kHalfPixel; }
};

}  // namespace polyop

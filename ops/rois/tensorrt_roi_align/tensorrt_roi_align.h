// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// RoIAlign of TensorRT's plugin, whose maximum is that of weighted pixels.
struct TensorrtRoiAlign {
  enum class Mode { kMax, kAvg };
  enum class Transformation { kNone, kHalfPixel };
  Transformation coordinate_transformation_mode = Transformation::kHalfPixel;
  Mode mode = Mode::kAvg;
  int64_t output_height = 1;
  int64_t output_width = 1;
  int64_t sampling_ratio = 0;
  float spatial_scale = 1.0f;

  static constexpr const char* kName = "tensorrt_roi_align";
  static constexpr Signature kSignature =
      "X: T[N, C, H, W], rois: T[R, 4], batch_indices: I[R] -> Y: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {
      "polyop::ROIAlign_TRT",  "TRT::ROIAlign_TRT",  "::ROIAlign_TRT",
      "polyop::ROIAlignX_TRT", "TRT::ROIAlignX_TRT", "::ROIAlignX_TRT",
  };
  static constexpr std::tuple kAttributes = {
      Attr("coordinate_transformation_mode", &TensorrtRoiAlign::coordinate_transformation_mode,
           "half_pixel: shift boxes by half a pixel; none: enlarge boxes to at least one pixel")
          .Codes("none", "half_pixel"),
      Attr("mode", &TensorrtRoiAlign::mode, "how to pool the samples of a bin").Codes("max", "avg"),
      Attr("output_height", &TensorrtRoiAlign::output_height, "number of bins along the y axis").Between(1, 4096),
      Attr("output_width", &TensorrtRoiAlign::output_width, "number of bins along the x axis").Between(1, 4096),
      Attr("sampling_ratio", &TensorrtRoiAlign::sampling_ratio,
           "samples per bin and axis; 0 or less: one per pixel, rounded up")
          .AtMost(1024),
      Attr("spatial_scale", &TensorrtRoiAlign::spatial_scale, "scale from box coordinates to pixels of the input")
          .GreaterThan(0),
  };
  static constexpr Doc kDoc = {
      .summary =
          "TensorRT's ROIAlign_TRT: roi_align with the batch indices as a separate input and a different maximum.",
      .semantics = R"(A RoI is (x1, y1, x2, y2). It is an error if one of `batch_indices` is not in [0, N). `avg`
          works like roi_align, whose `aligned` corresponds to half_pixel. `max` is the largest of the four weighted
          pixels of all samples; a pixel of weight 0 counts as 0, and so does a sample outside the image. NaN is
          ignored, and a bin without samples is 0.)",
      .source = "TensorRT's ROIAlign_TRT; He et al., Mask R-CNN, 2017",
      .differences = "In ONNX's documentation, as in roi_align, the maximum is that of the samples.",
  };

  bool aligned() const { return coordinate_transformation_mode == Transformation::kHalfPixel; }
};

}  // namespace polyop

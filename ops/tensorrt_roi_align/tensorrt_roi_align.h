#pragma once

#include "core/operator.h"

namespace polyop {

/// RoIAlign as TensorRT's plugin has it, whose maximum is that of weighted pixels.
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
           "half_pixel: boxes are shifted by half a pixel; none: they are at least one pixel large")
          .Codes("none", "half_pixel"),
      Attr("mode", &TensorrtRoiAlign::mode, "how the samples of a bin are pooled").Codes("max", "avg"),
      Attr("output_height", &TensorrtRoiAlign::output_height, "bins of a box from top to bottom").Between(1, 4096),
      Attr("output_width", &TensorrtRoiAlign::output_width, "bins of a box from left to right").Between(1, 4096),
      Attr("sampling_ratio", &TensorrtRoiAlign::sampling_ratio,
           "samples per bin and axis; 0 or less: one for each pixel, rounded up")
          .AtMost(1024),
      Attr("spatial_scale", &TensorrtRoiAlign::spatial_scale, "from the boxes' coordinates to the input's pixels")
          .GreaterThan(0),
  };
  static constexpr Doc kDoc = {
      .summary = "TensorRT's ROIAlign_TRT: roi_align with the pictures' indices as an input, and another maximum.",
      .semantics =
          "A roi is (x1, y1, x2, y2); `batch_indices` are numbers of pictures, others are an error. `avg` is that of "
          "roi_align, whose `aligned` is half_pixel. `max` is the greatest of all samples' four weighted pixels, where "
          "one of weight 0 is 0, as is a sample outside; NaN is passed over, and a bin without samples is 0.",
      .source = "TensorRT's ROIAlign_TRT; He et al., Mask R-CNN, 2017",
      .differences = "ONNX's documents have the maximum of the samples themselves, which is roi_align's.",
  };

  bool aligned() const { return coordinate_transformation_mode == Transformation::kHalfPixel; }
};

}  // namespace polyop

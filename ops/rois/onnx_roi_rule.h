// SPDX-License-Identifier: Apache-2.0
// Attributes shared by the operators with the boxes of ONNX's RoiAlign.
#pragma once

#include <cstdint>
#include <tuple>

#include "core/definition.h"
#include "ops/rois/roi_grid.h"

namespace polyop {

/// The base of an operator's parameters.
struct OnnxRoiRule {
  enum class Mode { kAvg, kMax };
  enum class Transformation { kHalfPixel, kOutputHalfPixel };
  Transformation coordinate_transformation_mode = Transformation::kHalfPixel;
  Mode mode = Mode::kAvg;
  int64_t output_height = 1;
  int64_t output_width = 1;
  int64_t sampling_ratio = 0;
  float spatial_scale = 1.0f;

  bool aligned() const { return coordinate_transformation_mode == Transformation::kHalfPixel; }
  RoiPooling Pooling() const { return {output_height, output_width, sampling_ratio, aligned(), mode == Mode::kAvg}; }
};

inline constexpr std::tuple kOnnxRoiAttributes = {
    Attr("coordinate_transformation_mode", &OnnxRoiRule::coordinate_transformation_mode,
         "half_pixel: shift boxes by half a pixel; output_half_pixel: enlarge boxes to at least one pixel")
        .OneOf("half_pixel", "output_half_pixel"),
    Attr("mode", &OnnxRoiRule::mode, "how to pool the samples of a bin").OneOf("avg", "max"),
    Attr("output_height", &OnnxRoiRule::output_height, "number of bins along the y axis").Between(1, 4096),
    Attr("output_width", &OnnxRoiRule::output_width, "number of bins along the x axis").Between(1, 4096),
    Attr("sampling_ratio", &OnnxRoiRule::sampling_ratio,
         "samples per bin and axis; 0 or less: one per pixel, rounded up")
        .AtMost(1024),
    Attr("spatial_scale", &OnnxRoiRule::spatial_scale, "scale from box coordinates to pixels of the input")
        .GreaterThan(0),
};

}  // namespace polyop

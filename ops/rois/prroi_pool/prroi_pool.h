// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Precise RoI pooling: the exact average of the bilinear surface over each bin.
struct PrRoiPool {
  int64_t pooled_height = 1;
  int64_t pooled_width = 1;
  float spatial_scale = 1.0f;

  static constexpr const char* kName = "prroi_pool";
  static constexpr Signature kSignature =
      "features: T[N, C, H, W], rois: T[R, 5] -> output: T[R, C, pooled_height, pooled_width]";
  static constexpr NodeName kNodes[] = {"mmcv::PrRoIPool"};
  static constexpr std::tuple kAttributes = {
      Attr("pooled_height", &PrRoiPool::pooled_height, "number of bins along the y axis")
          .Between(1, 4096)
          .Also("output_height"),
      Attr("pooled_width", &PrRoiPool::pooled_width, "number of bins along the x axis")
          .Between(1, 4096)
          .Also("output_width"),
      Attr("spatial_scale", &PrRoiPool::spatial_scale, "scale from box coordinates to pixels of the features")
          .GreaterThan(0),
  };
  static constexpr Doc kDoc = {
      .summary = "Precise RoI pooling: each bin of a box is the exact average of the bilinear surface (IoU-Net).",
      .semantics = R"(A RoI is (batch index, x1, y1, x2, y2). Its corners are scaled, but not shifted by half a
          pixel. The value of a bin is the integral of a surface over the bin, divided by the bin's area. The
          surface is bilinear between pixels; beyond the border it falls linearly to the zeros around the image. A
          RoI that is empty, reversed, NaN or infinite gives 0. It is an error if a batch index is not an integer in
          range. Weights are computed in double precision, sums in float.)",
      .source = R"(Jiang et al., Acquisition of Localization Confidence for Accurate Object Detection, 2018;
          `mmcv.ops.prroi_pool`)",
      .differences = "MMCV has GPU kernels only.",
  };
};

}  // namespace polyop

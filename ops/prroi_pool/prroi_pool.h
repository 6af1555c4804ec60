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
      Attr("pooled_height", &PrRoiPool::pooled_height, "bins of a box from top to bottom")
          .Between(1, 4096)
          .Also("output_height"),
      Attr("pooled_width", &PrRoiPool::pooled_width, "bins of a box from left to right")
          .Between(1, 4096)
          .Also("output_width"),
      Attr("spatial_scale", &PrRoiPool::spatial_scale, "from the boxes' coordinates to the features' pixels")
          .GreaterThan(0),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each box to a grid of bins, each the exact average of the bilinear surface (IoU-Net).",
      .semantics =
          "A roi is (batch index, x1, y1, x2, y2); its corners are scaled, and not shifted by half a pixel. A bin is "
          "the "
          "integral over it of the surface that is bilinear between pixels, and between those at the border and zeros "
          "around the picture, divided by the bin's area. A roi without area, reversed, NaN or infinite gives 0. A "
          "batch "
          "index that is not a whole number in range is an error. Weights are computed in double precision, sums in "
          "float.",
      .source =
          "Jiang et al., Acquisition of Localization Confidence for Accurate Object Detection, 2018; "
          "`mmcv.ops.prroi_pool`",
      .differences = "MMCV has it on GPUs alone.",
  };
};

}  // namespace polyop

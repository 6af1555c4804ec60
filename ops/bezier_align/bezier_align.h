#pragma once

#include "core/operator.h"

namespace polyop {

/// RoIAlign between two Bezier curves.
struct BezierAlign {
  int64_t output_height = 1;
  int64_t output_width = 1;
  float spatial_scale = 1.0f;
  int64_t sampling_ratio = 0;
  bool aligned = true;

  static constexpr const char* kName = "bezier_align";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], rois: T[R, 17] -> output: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {"polyop::BezierAlign"};
  static constexpr std::tuple kAttributes = {
      Attr("output_height", &BezierAlign::output_height, "bins from the upper curve to the lower one")
          .Between(1, 4096)
          .Also("pooled_height", "aligned_height"),
      Attr("output_width", &BezierAlign::output_width, "bins along the curves")
          .Between(1, 4096)
          .Also("pooled_width", "aligned_width"),
      Attr("spatial_scale", &BezierAlign::spatial_scale, "from the curves' coordinates to the input's pixels")
          .GreaterThan(0),
      Attr("sampling_ratio", &BezierAlign::sampling_ratio,
           "samples per bin and axis; 0 or less: one for each pixel, rounded up")
          .AtMost(1024),
      Attr("aligned", &BezierAlign::aligned,
           "pixels' middles are at halves; else regions are at least one pixel wide and high"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools the text between two Bezier curves to a straight grid by bilinear samples (ABCNet).",
      .semantics =
          "A roi is (batch index, x and y of eight points): the four of the upper curve from left to right, then the "
          "four of the lower one from right to left, both cubic. Bin (i, j) of h x w lies around the point that is i / "
          "h of the way from the upper curve to the lower one, both taken at their parameter j / w. All bins of a roi "
          "are upright, 1 / w as wide and 1 / h as high as the larger of the curves' extents from end to end; their "
          "samples and averages are those of roi_align. The bins of a roi with NaN or infinity are 0, and so are those "
          "of curves without an extent when sampling_ratio is 0 and aligned is set. A batch index that is not a whole "
          "number in range is an error. Places are computed in double precision, sums in float.",
      .source =
          "Liu et al., ABCNet: Real-time Scene Text Spotting with Adaptive Bezier-Curve Network, 2020; "
          "`mmcv.ops.bezier_align`",
      .differences = "MMCV computes places in float.",
  };
};

}  // namespace polyop

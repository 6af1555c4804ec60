// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// RoIAlign of the region between two Bezier curves.
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
      Attr("output_height", &BezierAlign::output_height, "number of bins from the upper to the lower curve")
          .Between(1, 4096)
          .Also("pooled_height", "aligned_height"),
      Attr("output_width", &BezierAlign::output_width, "number of bins along the curves")
          .Between(1, 4096)
          .Also("pooled_width", "aligned_width"),
      Attr("spatial_scale", &BezierAlign::spatial_scale, "scale from the curves' coordinates to the input's pixels")
          .GreaterThan(0),
      Attr("sampling_ratio", &BezierAlign::sampling_ratio,
           "samples per bin and axis; 0 or less: one per pixel, rounded up")
          .AtMost(1024),
      Attr("aligned", &BezierAlign::aligned,
           "true: pixel centres are at half-integers; false: regions are at least one pixel wide and high"),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Pools the region between two Bezier curves, such as curved text, to a straight grid by bilinear
          sampling (ABCNet).)",
      .semantics = R"(A roi is (batch index, x and y of eight points): four control points of the upper cubic curve from
          left to right, then four of the lower one from right to left. Bin (i, j) of h x w is centred on the point at i
          / h of the way from the upper to the lower curve, both evaluated at parameter j / w. All bins of a roi are
          axis-aligned; their size is 1 / w and 1 / h of the larger extent of the two curves from end to end. Bins are
          sampled and averaged as in `roi_align`. The bins of a roi with a NaN or infinite coordinate are 0; so are
          those of curves without an extent if `sampling_ratio` is 0 and `aligned` is set. A batch index that is not an
          integer in [0, N) is an error. Coordinates are computed in fp64, sums in fp32.)",
      .source = R"(Liu et al., ABCNet: Real-time Scene Text Spotting with Adaptive Bezier-Curve Network, 2020;
          `mmcv.ops.bezier_align`)",
      .differences = "MMCV computes coordinates in fp32.",
  };
};

}  // namespace polyop

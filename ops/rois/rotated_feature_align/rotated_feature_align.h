// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Adds to every pixel the features at the centre (and corners) of its predicted rotated box.
struct RotatedFeatureAlign {
  float spatial_scale = 1.0f;
  int64_t points = 1;

  static constexpr const char* kName = "rotated_feature_align";
  static constexpr Signature kSignature =
      "features: T[N, C, H, W], best_bboxes: T[N, H, W, 5] -> output: T[N, C, H, W]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVRotatedFeatureAlign", "mmdeploy::MMCVRotatedFeatureAlign"};
  static constexpr std::tuple kAttributes = {
      Attr("spatial_scale", &RotatedFeatureAlign::spatial_scale, "scale from box coordinates to pixels of the features")
          .GreaterThan(0),
      Attr("points", &RotatedFeatureAlign::points, "1: sample the centre of the box; 5: its four corners, too")
          .Between(1, 5),
  };
  static constexpr Doc kDoc = {
      .summary = "Adds to every pixel the features at its predicted rotated box (R3Det's feature refinement).",
      .semantics = R"(A box is (y, x, w, h, angle in radians): component 0 is y and component 1 is x, as in MMCV.
          The output is the features plus the sum of the bilinear samples at the box's centre and, with points = 5,
          at its four corners. A sample less than one pixel outside the image, or exactly at -1 or the extent, has
          the value of the border; a sample beyond is 0. A box with NaN or infinity adds nothing.)",
      .source = R"(Yang et al., R3Det: Refined Single-Stage Detector with Feature Refinement for Rotating Object,
          2021; `mmcv.ops.rotated_feature_align`)",
      .differences = "none known",
  };
  Status Check() const {
    return points == 1 || points == 5 ? Status::Ok()
                                      : InvalidArgument("attribute 'points': expected 1 or 5, got ", points);
  }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/rois/roi_pyramid_rule.h"

namespace polyop {

/// RoIAlign of rotated boxes over a feature pyramid; each box is pooled from the level that fits its size.
struct MultiLevelRotatedRoiAlign : RoiPyramidRule {
  bool clockwise = false;

  static constexpr const char* kName = "multi_level_rotated_roi_align";
  static constexpr Signature kSignature =
      "rois: T[R, 6], feats: T[N, C, *, *]... -> output: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {"mmdeploy::MMCVMultiLevelRotatedRoiAlign"};
  static constexpr auto kAttributes = std::tuple_cat(kRoiPyramidBins,
                                                     std::tuple{Attr("clockwise", &MultiLevelRotatedRoiAlign::clockwise,
                                                                     "1: angles are clockwise; 0: counter-clockwise")},
                                                     kRoiPyramidLevels);
  static constexpr Doc kDoc = {
      .summary = "Pools each rotated box from the level of a feature pyramid that fits its size.",
      .semantics = R"(A RoI is (batch index, centre x, centre y, width, height, angle) in pixels of the image, the
          angle in radians. Its level is floor(log2(sqrt(width * height) / finest_scale + 1e-6)), clamped to the
          existing levels and computed before roi_scale_factor is applied. A box whose area is not a positive number
          is pooled from the first level. Pooling works as in roi_align_rotated. It is an error if a batch index is
          not an integer in range, or if the number of strides is not the number of levels.)",
      .source = "Lin et al., Feature Pyramid Networks for Object Detection, 2017; MMDetection's SingleRoIExtractor",
      .differences = "none known",
  };
};

}  // namespace polyop

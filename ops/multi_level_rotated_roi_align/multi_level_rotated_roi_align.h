#pragma once

#include "core/operator.h"
#include "families/rois/roi_pyramid_rule.h"

namespace polyop {

/// RoIAlign of rotated boxes over a feature pyramid, each from the level that fits its size.
struct MultiLevelRotatedRoiAlign : RoiPyramidRule {
  bool clockwise = false;

  static constexpr const char* kName = "multi_level_rotated_roi_align";
  static constexpr Signature kSignature =
      "rois: T[R, 6], feats: T[N, C, *, *]... -> output: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {"mmdeploy::MMCVMultiLevelRotatedRoiAlign"};
  static constexpr auto kAttributes = std::tuple_cat(
      kRoiPyramidBins,
      std::tuple{Attr("clockwise", &MultiLevelRotatedRoiAlign::clockwise, "whether the angle turns clockwise")},
      kRoiPyramidLevels);
  static constexpr Doc kDoc = {
      .summary = "Pools each of the rotated boxes from the level of a feature pyramid that fits its size.",
      .semantics =
          "A roi is (batch index, centre x, centre y, width, height, angle) in pixels of the picture. Its level is "
          "floor(log2(sqrt(width * height) / finest_scale + 1e-6)), within the levels, before "
          "roi_scale_factor is applied; a box without a real area belongs to the first. The pooling itself is that of "
          "roi_align_rotated. A batch index "
          "that is not a whole number in range is an error, so are levels and strides of different number.",
      .source = "Lin et al., Feature Pyramid Networks for Object Detection, 2017; MMDetection's SingleRoIExtractor",
      .differences = "none known",
  };
};

}  // namespace polyop

#pragma once

#include "core/operator.h"

namespace polyop {

/// RoIAlign of rotated boxes over a feature pyramid, each from the level that fits its size.
struct MultiLevelRotatedRoiAlign {
  int64_t output_height = 1;
  int64_t output_width = 1;
  int64_t sampling_ratio = 0;
  bool clockwise = false;
  bool aligned = true;
  List<float, 16> featmap_strides;
  float roi_scale_factor = 0.0f;
  int64_t finest_scale = 56;

  static constexpr const char* kName = "multi_level_rotated_roi_align";
  static constexpr Signature kSignature =
      "rois: T[R, 6], feats: T[N, C, *, *]... -> output: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {"mmdeploy::MMCVMultiLevelRotatedRoiAlign"};
  static constexpr std::tuple kAttributes = {
      Attr("output_height", &MultiLevelRotatedRoiAlign::output_height, "bins along a box's height").Between(1, 4096),
      Attr("output_width", &MultiLevelRotatedRoiAlign::output_width, "bins along a box's width").Between(1, 4096),
      Attr("sampling_ratio", &MultiLevelRotatedRoiAlign::sampling_ratio,
           "samples per bin and axis; 0 or less: one for each pixel, rounded up")
          .AtMost(1024),
      Attr("clockwise", &MultiLevelRotatedRoiAlign::clockwise, "whether the angle turns clockwise"),
      Attr("aligned", &MultiLevelRotatedRoiAlign::aligned,
           "boxes are shifted by half a pixel; else they are at least one pixel large"),
      Attr("featmap_strides", &MultiLevelRotatedRoiAlign::featmap_strides,
           "pixels of the picture to a pixel of each level, one a level")
          .GreaterThan(0)
          .Required(),
      Attr("roi_scale_factor", &MultiLevelRotatedRoiAlign::roi_scale_factor,
           "boxes grow about their centres by this factor; 0 or less: not at all"),
      Attr("finest_scale", &MultiLevelRotatedRoiAlign::finest_scale,
           "boxes of up to twice this size are pooled from the first level")
          .AtLeast(1),
  };
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

#pragma once

#include "core/operator.h"
#include "families/rois/roi_pyramid_rule.h"

namespace polyop {

/// RoIAlign of one picture's boxes over a feature pyramid, as OpenVINO has it.
struct OpenvinoRoiFeatures {
  int64_t output_size = 7;
  int64_t sampling_ratio = 2;
  List<int64_t, 16> pyramid_scales;
  bool aligned = false;

  static constexpr const char* kName = "openvino_roi_features";
  static constexpr Signature kSignature =
      "rois: T[R, 4], feats: T[1, C, *, *]... -> features: T[R, C, output_size, output_size]";
  static constexpr NodeName kNodes[] = {"org.openvinotoolkit::ExperimentalDetectronROIFeatureExtractor"};
  static constexpr std::tuple kAttributes = {
      Attr("output_size", &OpenvinoRoiFeatures::output_size, "bins along each side of a box").Between(1, 4096),
      Attr("sampling_ratio", &OpenvinoRoiFeatures::sampling_ratio,
           "samples per bin and axis; 0 or less: one for each pixel, rounded up")
          .AtMost(1024),
      Attr("pyramid_scales", &OpenvinoRoiFeatures::pyramid_scales,
           "pixels of the picture to a pixel of each level, one a level")
          .GreaterThan(0)
          .Required(),
      Attr("aligned", &OpenvinoRoiFeatures::aligned,
           "boxes are shifted by half a pixel; else they are at least one pixel large"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each box of one picture from the level of a feature pyramid that fits its size (OpenVINO).",
      .semantics =
          "A roi is (x1, y1, x2, y2) in pixels of the picture. It is pooled as by multi_level_roi_align of mode avg "
          "and finest_scale 56: a box of 112 to 224 pixels from the second level, of 224 to 448 from the third. "
          "Levels and scales of different number are an error.",
      .source = "OpenVINO's ExperimentalDetectronROIFeatureExtractor-6; Lin et al., Feature Pyramid Networks, 2017",
      .differences =
          "A box without a real area is pooled from the first level. MMDeploy's attributes image_id, "
          "distribute_rois_between_levels and preserve_rois_order are without effect, as in OpenVINO: rois keep their "
          "order. OpenVINO's second output, the rois again, is none here: MMDeploy's nodes have one.",
  };

  /// What the pooling takes.
  RoiPyramidRule Rule() const {
    RoiPyramidRule rule;
    rule.output_height = rule.output_width = output_size;
    rule.sampling_ratio = sampling_ratio;
    rule.aligned = aligned;
    rule.featmap_strides.count = pyramid_scales.size();
    for (int64_t l = 0; l < pyramid_scales.size(); ++l) {
      rule.featmap_strides.items[static_cast<size_t>(l)] = static_cast<float>(pyramid_scales[l]);
    }
    return rule;
  }

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return RoiPyramidRule::CheckLevels("pyramid_scales", pyramid_scales.size(), inputs);
  }
};

}  // namespace polyop

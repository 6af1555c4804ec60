// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/rois/roi_pyramid_rule.h"

namespace polyop {

/// OpenVINO's RoIAlign of one image's boxes over a feature pyramid.
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
      Attr("output_size", &OpenvinoRoiFeatures::output_size, "number of bins along each side of a box")
          .Between(1, 4096),
      Attr("sampling_ratio", &OpenvinoRoiFeatures::sampling_ratio,
           "samples per bin and axis; 0 or less: one per pixel, rounded up")
          .AtMost(1024),
      Attr("pyramid_scales", &OpenvinoRoiFeatures::pyramid_scales,
           "strides of the levels in pixels of the image, one per level")
          .GreaterThan(0)
          .Required(),
      Attr("aligned", &OpenvinoRoiFeatures::aligned,
           "1: shift boxes by half a pixel; 0: enlarge boxes to at least one pixel"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each box of one image from the level of a feature pyramid that fits its size (OpenVINO).",
      .semantics = R"(A RoI is (x1, y1, x2, y2) in pixels of the image. It is pooled as in multi_level_roi_align
          with mode avg and finest_scale 56: boxes of 112 to 224 pixels from the second level, boxes of 224 to 448
          pixels from the third. It is an error if the number of scales is not the number of levels.)",
      .source = "OpenVINO's ExperimentalDetectronROIFeatureExtractor-6; Lin et al., Feature Pyramid Networks, 2017",
      .differences = R"(A box whose area is not a positive number is pooled from the first level. MMDeploy's
          attributes image_id, distribute_rois_between_levels and preserve_rois_order have no effect, as in
          OpenVINO: RoIs keep their order. OpenVINO's second output, a copy of the RoIs, does not exist here;
          MMDeploy's nodes have one output.)",
  };

  /// The equivalent parameters of the pyramid pooling.
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

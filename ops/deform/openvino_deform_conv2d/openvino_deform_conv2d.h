// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/deform_conv_rule.h"

namespace polyop {

/// OpenVINO's deformable convolution v1: the padding may differ on each side of the image.
struct OpenvinoDeformConv2d {
  enum class AutoPad { kNotset };
  std::array<int64_t, 2> strides = {1, 1};
  std::array<int64_t, 4> pads = {0, 0, 0, 0};
  std::array<int64_t, 2> dilations = {1, 1};
  int64_t group = 1;
  int64_t deformable_groups = 1;
  AutoPad auto_pad = AutoPad::kNotset;

  static constexpr const char* kName = "openvino_deform_conv2d";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], "
      "offset: T[N, 2*deformable_groups*KH*KW, "
      "OH = (H + pads[0] + pads[2] - dilations[0]*(KH - 1) - 1) / strides[0] + 1, "
      "OW = (W + pads[1] + pads[3] - dilations[1]*(KW - 1) - 1) / strides[1] + 1], "
      "weight: T[O, C/group, KH, KW] -> output: T[N, O, OH, OW]";
  static constexpr NodeName kNodes[] = {"org.openvinotoolkit::DeformableConv2D"};
  static constexpr std::tuple kAttributes = {
      Attr("strides", &OpenvinoDeformConv2d::strides, "strides of the filter along y and x").Between(1, 1 << 20),
      Attr("pads", &OpenvinoDeformConv2d::pads, "zero padding above, left of, below and right of the image")
          .Between(0, 1 << 20),
      Attr("dilations", &OpenvinoDeformConv2d::dilations, "distances between the points of the filter along y and x")
          .Between(1, 1 << 20),
      Attr("group", &OpenvinoDeformConv2d::group, "number of groups of channels that are convolved separately")
          .AtLeast(1)
          .Also("groups"),
      Attr("deformable_groups", &OpenvinoDeformConv2d::deformable_groups,
           "number of groups of channels that share offsets")
          .AtLeast(1)
          .Also("deform_groups", "deformable_group", "deform_group"),
      Attr("auto_pad", &OpenvinoDeformConv2d::auto_pad, "NOTSET: the padding is `pads`").OneOf("NOTSET"),
  };
  static constexpr Doc kDoc = {
      .summary = "OpenVINO's DeformableConvolution (v1): a convolution whose samples are shifted by offsets.",
      .semantics = kDeformConvSemantics,
      .source = "Dai et al., Deformable Convolutional Networks, 2017; OpenVINO's DeformableConvolution",
      .differences = R"(MMDeploy exports MMCV's operator as this node, so samples are computed as in MMCV: within
          one pixel outside the image they fade to 0. OpenVINO's samples are 0 as soon as they leave the image. An
          auto_pad other than NOTSET is rejected.)",
  };

  /// The equivalent parameters of the deformable convolution.
  DeformConvRule Rule() const { return {strides, {pads[0], pads[1]}, dilations, group, deformable_groups}; }

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return Rule().CheckGroups(inputs[0], inputs[2], {"input", "weight", "group", "deformable_groups"});
  }
};

}  // namespace polyop

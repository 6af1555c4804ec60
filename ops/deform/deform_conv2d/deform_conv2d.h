// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/deform_conv_rule.h"

namespace polyop {

/// Deformable convolution v1: samples are shifted by offsets.
struct DeformConv2d : DeformConvRule {
  static constexpr const char* kName = "deform_conv2d";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], "
      "offset: T[N, 2*deform_groups*KH*KW, OH = (H + 2*padding[0] - dilation[0]*(KH - 1) - 1) / stride[0] + 1, "
      "OW = (W + 2*padding[1] - dilation[1]*(KW - 1) - 1) / stride[1] + 1], "
      "weight: T[O, C/groups, KH, KW] -> output: T[N, O, OH, OW]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVDeformConv2d", "mmdeploy::MMCVDeformConv2d"};
  static constexpr auto kAttributes = kDeformConvAttributes;
  static constexpr Doc kDoc = {
      .summary = "Convolution with samples shifted by offsets (v1).",
      .semantics = kDeformConvSemantics,
      .source = "Dai et al., Deformable Convolutional Networks, 2017; `torchvision.ops.deform_conv2d`",
      .differences = R"(MMCV and MMDeploy restart the deform groups in each group, and fail for depthwise convolutions.
          MMDeploy's result is wrong if C / groups * KH * KW is not a multiple of 8. The attributes `im2col_step` and
          `bias`, which MMCV exports, have no effect.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckGroups(inputs[0], inputs[2]); }
};

}  // namespace polyop

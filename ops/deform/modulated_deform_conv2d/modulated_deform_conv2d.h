// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/deform_conv_rule.h"

namespace polyop {

/// Deformable convolution v2: samples are shifted by offsets and scaled by a mask.
struct ModulatedDeformConv2d : DeformConvRule {
  static constexpr const char* kName = "modulated_deform_conv2d";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], "
      "offset: T[N, 2*deform_groups*KH*KW, OH = (H + 2*padding[0] - dilation[0]*(KH - 1) - 1) / stride[0] + 1, "
      "OW = (W + 2*padding[1] - dilation[1]*(KW - 1) - 1) / stride[1] + 1], "
      "mask: T[N, deform_groups*KH*KW, OH, OW], "
      "weight: T[O, C/groups, KH, KW], bias?: T[O] -> output: T[N, O, OH, OW]";
  static constexpr NodeName kNodes[] = {
      "mmcv::MMCVModulatedDeformConv2d",       "mmdeploy::MMCVModulatedDeformConv2d",
      "polyop::ModulatedDeformConv2d",         "::ModulatedDeformConv2d",
      "polyop::ModulatedDeformableConv2dTRT",  "::ModulatedDeformableConv2dTRT",
      "polyop::ModulatedDeformableConv2dTRT2", "::ModulatedDeformableConv2dTRT2",
  };
  static constexpr auto kAttributes = kDeformConvAttributes;
  static constexpr Doc kDoc = {
      .summary = "Deformable convolution v2: a convolution whose samples are shifted by offsets and scaled by a mask.",
      .semantics = kDeformConvSemantics,
      .source = "Zhu et al., Deformable ConvNets v2, 2019; `torchvision.ops.deform_conv2d`",
      .differences = R"(MMCV and MMDeploy restart the deform groups in each group and fail for depthwise
          convolutions. MMDeploy's result is wrong when C / groups * KH * KW is not a multiple of 8.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckGroups(inputs[0], inputs[3]); }
};

}  // namespace polyop

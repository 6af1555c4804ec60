// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/onnx_deform_conv_rule.h"

namespace polyop {

/// ONNX's DeformConv for images.
struct OnnxDeformConv : OnnxDeformConvRule {
  static constexpr const char* kName = "onnx_deform_conv";
  static constexpr Signature kSignature =
      "X: T[N, C, H, W], W: T[O, C/group, KH, KW], offset: T[N, 2*offset_group*KH*KW, "
      "OH = (H + pads[0] + pads[2] - dilations[0]*(KH - 1) - 1) / strides[0] + 1, "
      "OW = (W + pads[1] + pads[3] - dilations[1]*(KW - 1) - 1) / strides[1] + 1], "
      "B?: T[O], mask?: T[N, offset_group*KH*KW, OH, OW] -> Y: T[N, O, OH, OW]";
  static constexpr NodeName kNodes[] = {NodeName("polyop::DeformConv").Mirror(19).Mirror(22)};
  static constexpr auto kAttributes = kOnnxDeformConvAttributes;
  static constexpr Doc kDoc = {
      .summary = "ONNX's DeformConv: a convolution whose samples are shifted by offsets and scaled by a mask.",
      .semantics = kDeformConvSemantics,
      .source =
          "ONNX's operators, DeformConv of opsets 19 and 22; Zhu et al., Deformable ConvNets v2, 2019; "
          "`torchvision.ops.deform_conv2d`",
      .differences = "Only images: ONNX allows any number of spatial dimensions.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckConvolution(inputs[0], inputs[1]); }
};

}  // namespace polyop

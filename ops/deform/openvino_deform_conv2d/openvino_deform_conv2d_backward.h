// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/deform/openvino_deform_conv2d/openvino_deform_conv2d.h"

namespace polyop {

/// The gradient of OpenVINO's deformable convolution v1, as that of deform_conv2d.
struct OpenvinoDeformConv2dBackward : GradientOf<OpenvinoDeformConv2d> {
  static constexpr const char* kName = "openvino_deform_conv2d_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, O, OH, OW], input: T[N, C, H, W], offset: T[N, 2*deformable_groups*KH*KW, "
      "OH = (H + pads[0] + pads[2] - dilations[0]*(KH - 1) - 1) / strides[0] + 1, "
      "OW = (W + pads[1] + pads[3] - dilations[1]*(KW - 1) - 1) / strides[1] + 1], "
      "weight: T[O, C/group, KH, KW] -> grad_input?: T[N, C, H, W], "
      "grad_offset?: T[N, 2*deformable_groups*KH*KW, OH, OW], grad_weight?: T[O, C/group, KH, KW]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return Rule().CheckGroups(inputs[1], inputs[3], {"input", "weight", "group", "deformable_groups"});
  }
};

}  // namespace polyop

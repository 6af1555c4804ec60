// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/deform/onnx_deform_conv/onnx_deform_conv.h"

namespace polyop {

/// The gradient of ONNX's DeformConv, as that of modulated_deform_conv2d. A missing mask is 1 everywhere.
struct OnnxDeformConvBackward : GradientOf<OnnxDeformConv> {
  static constexpr const char* kName = "onnx_deform_conv_backward";
  static constexpr Signature kSignature =
      "grad_Y: T[N, O, OH, OW], X: T[N, C, H, W], W: T[O, C/group, KH, KW], offset: T[N, 2*offset_group*KH*KW, "
      "OH = (H + pads[0] + pads[2] - dilations[0]*(KH - 1) - 1) / strides[0] + 1, "
      "OW = (W + pads[1] + pads[3] - dilations[1]*(KW - 1) - 1) / strides[1] + 1], "
      "mask?: T[N, offset_group*KH*KW, OH, OW] -> grad_X?: T[N, C, H, W], grad_W?: T[O, C/group, KH, KW], "
      "grad_offset?: T[N, 2*offset_group*KH*KW, OH, OW], grad_B?: T[O], "
      "grad_mask?: T[N, offset_group*KH*KW, OH, OW]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckConvolution(inputs[1], inputs[2]); }
};

}  // namespace polyop

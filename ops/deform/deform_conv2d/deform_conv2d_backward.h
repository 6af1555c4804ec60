// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/deform/deform_conv2d/deform_conv2d.h"

namespace polyop {

/// The gradient of deformable convolution v1. A sample that is NaN or outside has none. At a pixel's centre, the
/// derivative with respect to the position is that towards larger positions, as in MMCV and torchvision.
struct DeformConv2dBackward : GradientOf<DeformConv2d> {
  static constexpr const char* kName = "deform_conv2d_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, O, OH, OW], input: T[N, C, H, W], "
      "offset: T[N, 2*deform_groups*KH*KW, OH = (H + 2*padding[0] - dilation[0]*(KH - 1) - 1) / stride[0] + 1, "
      "OW = (W + 2*padding[1] - dilation[1]*(KW - 1) - 1) / stride[1] + 1], weight: T[O, C/groups, KH, KW] -> "
      "grad_input?: T[N, C, H, W], grad_offset?: T[N, 2*deform_groups*KH*KW, OH, OW], "
      "grad_weight?: T[O, C/groups, KH, KW]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckGroups(inputs[1], inputs[3]); }
};

}  // namespace polyop

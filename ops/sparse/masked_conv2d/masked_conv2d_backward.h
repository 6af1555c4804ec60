// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/sparse/masked_conv2d/masked_conv2d.h"

namespace polyop {

/// The gradients with respect to features, weights and bias. MMCV has none.
struct MaskedConv2dBackward : GradientOf<MaskedConv2d> {
  static constexpr const char* kName = "masked_conv2d_backward";
  static constexpr Signature kSignature =
      "grad_output: T[1, K, H + 2*padding[0] - KH + 1, W + 2*padding[1] - KW + 1], features: T[1, C, H, W], "
      "mask: M[1, H + 2*padding[0] - KH + 1, W + 2*padding[1] - KW + 1], weight: T[K, C, KH, KW], bias?: T[K] -> "
      "grad_features?: T[1, C, H, W], grad_weight?: T[K, C, KH, KW], grad_bias?: T[K]";
};

}  // namespace polyop

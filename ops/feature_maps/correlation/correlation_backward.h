// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/feature_maps/correlation/correlation.h"

namespace polyop {

/// The gradient of Correlation with respect to both feature maps. Unlike MMCV's, it takes `dilation_patch` into
/// account.
struct CorrelationBackward : GradientOf<Correlation> {
  static constexpr const char* kName = "correlation_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, 2*max_displacement + 1, 2*max_displacement + 1, "
      "(H + 2*padding[0] - dilation[0]*(kernel_size[0] - 1) - 1) / stride[0] + 1, "
      "(W + 2*padding[1] - dilation[1]*(kernel_size[1] - 1) - 1) / stride[1] + 1], "
      "input1: T[N, C, H, W], input2: T[N, C, H, W] -> grad_input1?: T[N, C, H, W], grad_input2?: T[N, C, H, W]";
};

}  // namespace polyop

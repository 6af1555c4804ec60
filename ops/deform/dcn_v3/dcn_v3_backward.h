// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/deform/dcn_v3/dcn_v3.h"

namespace polyop {

/// The gradient of DCNv3. A sample that is NaN or outside has none. At a pixel's centre, the derivative with respect to
/// the position is that towards larger positions, as in the original.
struct DcnV3Backward : GradientOf<DcnV3> {
  static constexpr const char* kName = "dcn_v3_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, OH, OW, group*group_channels], input: T[N, H, W, group*group_channels], "
      "offset: T[N, OH = (H + 2*pad_h - dilation_h*(kernel_h - 1) - 1) / stride_h + 1, "
      "OW = (W + 2*pad_w - dilation_w*(kernel_w - 1) - 1) / stride_w + 1, "
      "group*(kernel_h*kernel_w - remove_center)*2], "
      "mask: T[N, OH, OW, group*(kernel_h*kernel_w - remove_center)] -> "
      "grad_input?: T[N, H, W, group*group_channels], "
      "grad_offset?: T[N, OH, OW, group*(kernel_h*kernel_w - remove_center)*2], "
      "grad_mask?: T[N, OH, OW, group*(kernel_h*kernel_w - remove_center)]";
};

}  // namespace polyop

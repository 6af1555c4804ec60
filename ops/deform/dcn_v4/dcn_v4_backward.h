// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/deform/dcn_v4/dcn_v4.h"

namespace polyop {

/// The gradient of DCNv4. A sample that is NaN or outside has none, and neither has the padding of rows. At a pixel's
/// centre, the derivative with respect to the position is that towards larger positions, as in the original.
struct DcnV4Backward : GradientOf<DcnV4> {
  static constexpr const char* kName = "dcn_v4_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, OH, OW, group*group_channels], input: T[N, H, W, group*group_channels], "
      "offset_mask: T[N, OH = (H + 2*pad_h - dilation_h*(kernel_h - 1) - 1) / stride_h + 1, "
      "OW = (W + 2*pad_w - dilation_w*(kernel_w - 1) - 1) / stride_w + 1, CP] "
      "-> grad_input?: T[N, H, W, group*group_channels], grad_offset_mask?: T[N, OH, OW, CP]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return DcnV4::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop

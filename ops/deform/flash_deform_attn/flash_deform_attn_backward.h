// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/deform/flash_deform_attn/flash_deform_attn.h"

namespace polyop {

/// The gradients of deformable attention with respect to values and to packed locations and logits. A sample outside of
/// its level has none of its location.
struct FlashDeformAttnBackward : GradientOf<FlashDeformAttn> {
  static constexpr const char* kName = "flash_deform_attn_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, Q, G*D], value: T[N, S, G, D], spatial_shapes: I[L, 2], level_start_index: I[L], "
      "loc_attn: T[N, Q, G, L*points*3] -> grad_value?: T[N, S, G, D], grad_loc_attn?: T[N, Q, G, L*points*3]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckAttnPixels(inputs[1]); }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/deform/ms_deform_attn_by_head/ms_deform_attn_by_head.h"

namespace polyop {

/// The gradients of ms_deform_attn_backward, for an output with a separate dimension for the heads.
struct MsDeformAttnByHeadBackward : GradientOf<MsDeformAttnByHead> {
  static constexpr const char* kName = "ms_deform_attn_by_head_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, Q, M, D], value: T[N, S, M, D], spatial_shapes: I[L, 2], level_start_index: I[L], "
      "sampling_locations: T[N, Q, M, L, P, 2], attention_weights: T[N, Q, M, L, P] -> grad_value?: T[N, S, M, D], "
      "grad_sampling_locations?: T[N, Q, M, L, P, 2], grad_attention_weights?: T[N, Q, M, L, P]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckAttnPixels(inputs[1]); }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/deform/ms_deform_attn/ms_deform_attn.h"

namespace polyop {

/// The gradients of deformable attention with respect to values, locations and weights, as in MMCV. A sample outside of
/// its level has none.
struct MsDeformAttnBackward : GradientOf<MsDeformAttn> {
  static constexpr const char* kName = "ms_deform_attn_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, Q, M*D], value: T[N, S, M, D], spatial_shapes: I[L, 2], level_start_index: I[L], "
      "sampling_locations: T[N, Q, M, L, P, 2], attention_weights: T[N, Q, M, L, P] -> grad_value?: T[N, S, M, D], "
      "grad_sampling_locations?: T[N, Q, M, L, P, 2], grad_attention_weights?: T[N, Q, M, L, P]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckAttnPixels(inputs[1]); }
};

}  // namespace polyop

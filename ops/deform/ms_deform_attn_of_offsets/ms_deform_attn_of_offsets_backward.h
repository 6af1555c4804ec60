// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets.h"

namespace polyop {

/// The gradients of deformable attention with respect to values, reference points, offsets and logits. A sample outside
/// of its level has none of its position.
struct MsDeformAttnOfOffsetsBackward : GradientOf<MsDeformAttnOfOffsets> {
  static constexpr const char* kName = "ms_deform_attn_of_offsets_backward";
  static constexpr Signature kSignature =
      "grad_output: T[B, Q, M, D], value: T[B, S, M, D], spatial_shapes: I[L, 2], reference_points: T[B, Q, 1, R], "
      "sampling_offsets: T[B, Q, M, F], attention_weights: T[B, Q, M, F / 2] -> grad_value?: T[B, S, M, D], "
      "grad_reference_points?: T[B, Q, 1, R], grad_sampling_offsets?: T[B, Q, M, F], "
      "grad_attention_weights?: T[B, Q, M, F / 2]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return MsDeformAttnOfOffsets::CheckInputs(inputs.subspan(1));
  }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/attn_levels.h"

namespace polyop {

/// Multi-scale deformable attention with a separate dimension for the heads in its output.
struct MsDeformAttnByHead {
  static constexpr const char* kName = "ms_deform_attn_by_head";
  static constexpr Signature kSignature =
      "value: T[N, S, M, D], spatial_shapes: I[L, 2], level_start_index: I[L], sampling_locations: T[N, Q, M, L, P, "
      "2], "
      "attention_weights: T[N, Q, M, L, P] -> output: T[N, Q, M, D]";
  static constexpr NodeName kNodes[] = {"polyop::MultiscaleDeformableAttnPlugin_TRT",
                                        "TRT::MultiscaleDeformableAttnPlugin_TRT",
                                        "::MultiscaleDeformableAttnPlugin_TRT"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary =
          "Like ms_deform_attn, but with a separate dimension for the heads in the output, as in TensorRT's plugin.",
      .semantics = "Like ms_deform_attn, but the output is [N, Q, M, D].",
      .source = "TensorRT's MultiscaleDeformableAttnPlugin_TRT; Zhu et al., Deformable DETR, 2021",
      .differences = "The plugin does not check spatial_shapes and level_start_index.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckAttnPixels(inputs[0]); }
};

}  // namespace polyop

#pragma once

#include "core/operator.h"
#include "families/deform_attn/attn_levels.h"

namespace polyop {

/// Multi-scale deformable attention whose output keeps the heads apart.
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
      .summary = "ms_deform_attn with an output that keeps the heads apart, as TensorRT's plugin makes it.",
      .semantics = "As ms_deform_attn, but the output is [N, Q, M, D].",
      .source = "TensorRT's MultiscaleDeformableAttnPlugin_TRT; Zhu et al., Deformable DETR, 2021",
      .differences = "The plugin trusts spatial_shapes and level_start_index.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckAttnPixels(inputs[0]); }
};

}  // namespace polyop

#pragma once

#include "core/operator.h"
#include "families/deform_attn/attn_levels.h"

namespace polyop {

/// Multi-scale deformable attention: every query gathers few bilinear samples from several feature levels.
struct MsDeformAttn {
  static constexpr const char* kName = "ms_deform_attn";
  static constexpr Signature kSignature =
      "value: T[N, S, M, D], spatial_shapes: I[L, 2], level_start_index: I[L], sampling_locations: T[N, Q, M, L, P, "
      "2], "
      "attention_weights: T[N, Q, M, L, P] -> output: T[N, Q, M*D]";
  static constexpr NodeName kNodes[] = {
      "mmdeploy::MMCVMultiScaleDeformableAttention", "mmcv::MMCVMultiScaleDeformableAttention",
      "polyop::MultiScaleDeformableAttentionPlugin", "::MultiScaleDeformableAttentionPlugin"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary =
          "Gathers weighted bilinear samples from several feature levels for every query and head (Deformable DETR).",
      .semantics =
          "Level l is spatial_shapes[l] = (height, width) and begins at level_start_index[l] of S. A location (x, y) "
          "is 0 to 1 over a "
          "level; its sample lies at x * width - 0.5, y * height - 0.5, and what is outside is 0. A NaN or infinite "
          "location samples "
          "nothing. A level that does not fit into S is an error. Sums are in float.",
      .source =
          "Zhu et al., Deformable DETR, 2021; `torch.nn.functional.grid_sample(bilinear, zeros, align_corners=False)` "
          "on each level",
      .differences = "none known",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckAttnPixels(inputs[0]); }
};

}  // namespace polyop

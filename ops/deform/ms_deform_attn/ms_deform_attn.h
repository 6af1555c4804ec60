// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/attn_levels.h"

namespace polyop {

/// Multi-scale deformable attention: every query gathers a few bilinear samples from several feature levels.
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
      .summary = R"(Multi-scale deformable attention: sums weighted bilinear samples from several feature levels for
          every query and head (Deformable DETR).)",
      .semantics = R"(Level l has spatial_shapes[l] = (height, width) pixels and begins at index
          level_start_index[l] of the dimension S. A location (x, y) ranges over [0, 1] across a level; it is
          sampled at x * width - 0.5, y * height - 0.5 with zeros outside the level. A NaN or infinite location
          samples 0. It is an error if a level does not fit into S. Sums are accumulated in float.)",
      .source = R"(Zhu et al., Deformable DETR, 2021; `torch.nn.functional.grid_sample(bilinear, zeros,
          align_corners=False)` on each level)",
      .differences = "none known",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckAttnPixels(inputs[0]); }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/attn_levels.h"

namespace polyop {

/// Multi-scale deformable attention from the raw outputs of a network: offsets from reference points, and logits.
struct MsDeformAttnOfOffsets {
  static constexpr const char* kName = "ms_deform_attn_of_offsets";
  static constexpr Signature kSignature =
      "value: T[B, S, M, D], spatial_shapes: I[L, 2], reference_points: T[B, Q, 1, R], sampling_offsets: T[B, Q, M, "
      "F], "
      "attention_weights: T[B, Q, M, F / 2] -> output: T[B, Q, M, D]";
  static constexpr NodeName kNodes[] = {"polyop::MultiScaleDeformableAttnTRT", "polyop::MultiScaleDeformableAttnTRT2",
                                        "::MultiScaleDeformableAttnTRT", "::MultiScaleDeformableAttnTRT2"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = R"(Multi-scale deformable attention that adds offsets to reference points and applies the softmax
          to the weights (BEVFormer).)",
      .semantics = R"(With P points per level, F is L * P * 2. sampling_offsets are (x, y) for each level and point,
          in pixels of the level. attention_weights are logits; their softmax over all L * P samples gives the
          weights. R is G * 2: each query has G reference points (x, y) that range over [0, 1] across a level, and
          point p uses reference point p mod G.

          Level l has spatial_shapes[l] = (height, width) pixels; levels are consecutive in S. A point is sampled at
          x * width + offset_x - 0.5, y * height + offset_y - 0.5 with zeros outside the level. A NaN or infinite
          position samples 0. If the logits of a query and head contain NaN or +infinity, all of its weights are
          NaN. It is an error if a level does not fit into S. Sums are accumulated in float.)",
      .source = "MultiScaleDeformableAttnTRT of BEVFormer_tensorrt; Li et al., BEVFormer, 2022",
      .differences =
          "The plugin does not check spatial_shapes. Its second version, for fp16, computes and sums in fp16.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckAttnPixels(inputs[0]));
    const Shape &levels = inputs[1].shape, &references = inputs[2].shape, &offsets = inputs[3].shape;
    if (references[3] < 2 || references[3] % 2 != 0) {
      return InvalidArgument("'reference_points': expected a positive multiple of 2 in dimension 3, got shape ",
                             ToString(references));
    }
    if (levels[0] == 0 ? offsets[3] == 0 : offsets[3] % 2 == 0 && offsets[3] / 2 % levels[0] == 0) return Status::Ok();
    return InvalidArgument("'sampling_offsets': expected a multiple of 2 * L = ", 2 * levels[0],
                           " in dimension 3, got shape ", ToString(offsets));
  }
};

}  // namespace polyop

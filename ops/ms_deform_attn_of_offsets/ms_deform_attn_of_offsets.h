#pragma once

#include "core/operator.h"
#include "families/deform_attn/attn_levels.h"

namespace polyop {

/// Multi-scale deformable attention from what a network makes for it: offsets about reference points, and logits.
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
      .summary =
          "Multi-scale deformable attention that adds offsets to reference points and softmaxes the weights itself "
          "(BEVFormer).",
      .semantics =
          "With P points a level, F is L * P * 2: sampling_offsets are (x, y) for each level and point, in pixels of "
          "the level, and attention_weights are logits, whose softmax over all L * P weighs the samples. R is G * 2: a "
          "query has G reference points (x, y), 0 to 1 over a level, and point p takes the one of number p mod G. "
          "Level l is spatial_shapes[l] = (height, width); levels lie in S one behind the other. The sample of a point "
          "lies at x * width + offset_x - 0.5, y * height + offset_y - 0.5, and what is outside is 0. A NaN or "
          "infinite position samples nothing; NaN or +infinity among the logits of a query's head make its weights "
          "NaN. A level that does not fit into S is an error. Sums are in float.",
      .source = "MultiScaleDeformableAttnTRT of BEVFormer_tensorrt; Li et al., BEVFormer, 2022",
      .differences = "The plugin trusts spatial_shapes. Its second version, for fp16, computes and sums in fp16.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckAttnPixels(inputs[0]));
    const Shape &levels = inputs[1].shape, &references = inputs[2].shape, &offsets = inputs[3].shape;
    if (references[3] < 2 || references[3] % 2 != 0) {
      return InvalidArgument("'reference_points' has shape ", ToString(references),
                             ", wanted 2 for each reference point, and at least one, in dimension 3");
    }
    if (levels[0] == 0 ? offsets[3] == 0 : offsets[3] % 2 == 0 && offsets[3] / 2 % levels[0] == 0) return Status::Ok();
    return InvalidArgument("'sampling_offsets' has shape ", ToString(offsets),
                           ", wanted 2 for each point of each of the L = ", levels[0], " levels in dimension 3");
  }
};

}  // namespace polyop

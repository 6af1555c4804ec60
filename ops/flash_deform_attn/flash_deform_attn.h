#pragma once

#include "core/operator.h"
#include "families/deform_attn/attn_levels.h"

namespace polyop {

/// Multi-scale deformable attention whose locations and logits lie side by side in one tensor.
struct FlashDeformAttn {
  int64_t points = 1;

  static constexpr const char* kName = "flash_deform_attn";
  static constexpr Signature kSignature =
      "value: T[N, S, G, D], spatial_shapes: I[L, 2], level_start_index: I[L], loc_attn: T[N, Q, G, L*points*3] "
      "-> output: T[N, Q, G*D]";
  static constexpr NodeName kNodes[] = {"polyop::FlashDeformAttn"};
  static constexpr std::tuple kAttributes = {
      Attr("points", &FlashDeformAttn::points, "samples of a level").Between(1, 1 << 20).Also("num_points").Required(),
  };
  static constexpr Doc kDoc = {
      .summary =
          "Multi-scale deformable attention whose locations and logits lie side by side in one tensor (DCNv4's "
          "FlashDeformAttn).",
      .semantics =
          "A head's row of loc_attn has L * points locations (x, y), level by level, then as many logits, whose "
          "softmax "
          "over all of them weighs the samples. A location is 0 to 1 over a level; its sample lies at x * width - 0.5, "
          "y "
          "* height - 0.5, and what is outside is 0. Level l is spatial_shapes[l] = (height, width) and begins at "
          "level_start_index[l] of S. A NaN or infinite location samples nothing; NaN or +infinity among a head's "
          "logits "
          "make its weights NaN. A level that does not fit into S is an error. Sums are in float.",
      .source =
          "Xiong et al., Efficient Deformable ConvNets: Rethinking Dynamic and Sparse Operator for Vision "
          "Applications, 2024; `FlashDeformAttnFunction` of OpenGVLab/DCNv4",
      .differences = "The attribute im2col_step is without effect. The original takes 8 channels a head or multiples.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckAttnPixels(inputs[0]); }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/attn_levels.h"

namespace polyop {

/// Multi-scale deformable attention with locations and logits packed into one tensor.
struct FlashDeformAttn {
  int64_t points = 1;

  static constexpr const char* kName = "flash_deform_attn";
  static constexpr Signature kSignature =
      "value: T[N, S, G, D], spatial_shapes: I[L, 2], level_start_index: I[L], loc_attn: T[N, Q, G, L*points*3] "
      "-> output: T[N, Q, G*D]";
  static constexpr NodeName kNodes[] = {"polyop::FlashDeformAttn"};
  static constexpr std::tuple kAttributes = {
      Attr("points", &FlashDeformAttn::points, "samples per level").Between(1, 1 << 20).Also("num_points").Required(),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Multi-scale deformable attention with locations and logits packed into one tensor (DCNv4's
          FlashDeformAttn).)",
      .semantics = R"(A head's row of `loc_attn` holds L * points locations (x, y), level by level, followed by as many
          logits. The softmax over all logits of the row gives the weights of the samples. Locations are normalised: 0
          to 1 over a level; the sample is at (x * width - 0.5, y * height - 0.5) and is 0 outside of the level. Level l
          has the extents spatial_shapes[l] = (height, width) and begins at level_start_index[l] of S. A NaN or infinite
          location contributes 0; NaN or +infinity among the logits of a head makes its weights NaN. A level that does
          not fit into S is an error. Accumulates in fp32.)",
      .source = R"(Xiong et al., Efficient Deformable ConvNets: Rethinking Dynamic and Sparse Operator for Vision
          Applications, 2024; `FlashDeformAttnFunction` of OpenGVLab/DCNv4)",
      .differences = R"(The attribute `im2col_step` has no effect. The original requires a multiple of 8 channels per
          head.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckAttnPixels(inputs[0]); }
};

}  // namespace polyop

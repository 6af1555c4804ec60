// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Scaled dot-product attention, with the weights as a second output.
struct ScaledDotProductAttention {
  static constexpr const char* kName = "scaled_dot_product_attention";
  static constexpr Signature kSignature =
      "q: T[B, L, E], k: T[B, S, E], v: T[B, S, V], mask?: T[...M] -> out: T[B, L, V], weights: T[B, L, S]";
  static constexpr NodeName kNodes[] = {"mmdeploy::ScaledDotProductAttentionTRT"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Scaled dot-product attention: softmax(q k^T / sqrt(E) + mask) v, and the softmax.",
      .semantics = R"(`mask` is added to the scaled products and broadcasts to [B, L, S]; it may, for example, have
          the shape [L, S] or [B, 1, S]. A mask of -infinity excludes a key. A query whose keys are all excluded
          gets NaN in the weights and in the output, as in torch. If a row of products contains NaN or +infinity,
          the whole row is NaN. Without keys (S = 0) the output is 0. fp16 and bf16 are computed in fp32; the output
          is computed from the weights before they are rounded.)",
      .source = R"(A. Vaswani et al., Attention Is All You Need, 2017;
          `torch.nn.functional._scaled_dot_product_attention` of torch 1.x, without dropout)",
      .differences = "MMDeploy's TensorRT plugin supports only fp32 and requires V = E.",
  };

  /// Checks that the mask broadcasts to the weights.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const AnyTensor* const mask = GivenInput(inputs, 3);
    if (mask == nullptr) return Status::Ok();
    const Shape weights = {inputs[0].shape[0], inputs[0].shape[1], inputs[1].shape[1]};
    bool fits = mask->shape.rank() <= 3;
    for (int i = 1; fits && i <= mask->shape.rank(); ++i) {
      const int64_t extent = mask->shape[mask->shape.rank() - i];
      fits = extent == weights[3 - i] || extent == 1;
    }
    if (fits) return Status::Ok();
    return InvalidArgument("'mask': expected a shape that broadcasts to [B, L, S] = ", ToString(weights), ", got ",
                           ToString(mask->shape));
  }
};

}  // namespace polyop

#pragma once

#include "core/operator.h"

namespace polyop {

/// Attention of queries over keys and values, with the attention weights as a second output.
struct ScaledDotProductAttention {
  static constexpr const char* kName = "scaled_dot_product_attention";
  static constexpr Signature kSignature =
      "q: T[B, L, E], k: T[B, S, E], v: T[B, S, V], mask?: T[...M] -> out: T[B, L, V], weights: T[B, L, S]";
  static constexpr NodeName kNodes[] = {"mmdeploy::ScaledDotProductAttentionTRT"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "softmax(q k^T / sqrt(E) + mask) v, and the softmax itself.",
      .semantics =
          "The mask is added before the softmax; its shape is [B, L, S] or [L, S], which serves the whole batch. A row whose logits are all -infinity, "
          "and one that holds a NaN or +infinity, has NaN weights, as in torch. Without keys (S = 0) the output is 0. Sums are in float.",
      .source = "Vaswani et al., Attention Is All You Need, 2017; torch's `_scaled_dot_product_attention`",
      .differences = "none known",
  };
};

}  // namespace polyop

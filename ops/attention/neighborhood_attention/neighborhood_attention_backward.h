// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/attention/neighborhood_attention/neighborhood_attention.h"

namespace polyop {

/// The gradients of NeighborhoodAttention with respect to queries, keys and values.
struct NeighborhoodAttentionBackward : GradientOf<NeighborhoodAttention> {
  static constexpr const char* kName = "neighborhood_attention_backward";
  static constexpr Signature kSignature =
      "grad_output: T[batch, ...S, heads, columns], query: T[batch, ...S, heads, depth], "
      "key: T[batch, ...S, heads, depth], value: T[batch, ...S, heads, columns] -> "
      "grad_query?: T[batch, ...S, heads, depth], grad_key?: T[batch, ...S, heads, depth], "
      "grad_value?: T[batch, ...S, heads, columns]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return ForwardOperator::CheckInputs(inputs.subspan(1));
  }
};

}  // namespace polyop

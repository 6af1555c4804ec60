// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/attention/qkv_attention/qkv_attention.h"

namespace polyop {

/// The gradients of QkvAttention with respect to queries, keys and values.
struct QkvAttentionBackward : GradientOf<QkvAttention> {
  static constexpr const char* kName = "qkv_attention_backward";
  static constexpr Signature kSignature =
      "grad_output: T[B, L, V], query: T[B, L, E], key: T[B, S, E], value: T[B, S, V] -> "
      "grad_query?: T[B, L, E], grad_key?: T[B, S, E], grad_value?: T[B, S, V]";
};

}  // namespace polyop

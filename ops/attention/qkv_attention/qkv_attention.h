// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Scaled dot-product attention without a mask.
struct QkvAttention {
  static constexpr const char* kName = "qkv_attention";
  static constexpr Signature kSignature = "query: T[B, L, E], key: T[B, S, E], value: T[B, S, V] -> output: T[B, L, V]";
  static constexpr NodeName kNodes[] = {"polyop::QKVTRT", "polyop::QKVTRT2", "::QKVTRT", "::QKVTRT2"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Scaled dot-product attention without a mask: softmax(query key^T / sqrt(E)) value.",
      .semantics = R"(If a row of products contains NaN or +infinity, the whole row of the output is NaN. Without
          keys (S = 0) the output is 0. fp16 and bf16 are computed in fp32. See scaled_dot_product_attention for the
          form with a mask, which also returns the softmax.)",
      .source = "QKVTRT of BEVFormer_tensorrt; A. Vaswani et al., Attention Is All You Need, 2017",
      .differences = "For fp16, the plugin's second version computes in fp16.",
  };
};

}  // namespace polyop

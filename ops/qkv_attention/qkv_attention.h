#pragma once

#include "core/operator.h"

namespace polyop {

/// Attention of queries to keys, without a mask.
struct QkvAttention {
  static constexpr const char* kName = "qkv_attention";
  static constexpr Signature kSignature = "query: T[B, L, E], key: T[B, S, E], value: T[B, S, V] -> output: T[B, L, V]";
  static constexpr NodeName kNodes[] = {"polyop::QKVTRT", "polyop::QKVTRT2", "::QKVTRT", "::QKVTRT2"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "softmax(query key^T / sqrt(E)) value: attention without a mask.",
      .semantics =
          "NaN or +infinity in a row of products makes the whole row NaN. Without keys (S = 0) the output is 0. fp16 "
          "and bf16 are computed in fp32. The form with a mask, which gives the softmax, too, is "
          "scaled_dot_product_attention.",
      .source = "QKVTRT of BEVFormer_tensorrt; A. Vaswani et al., Attention Is All You Need, 2017",
      .differences = "The plugin's second version computes fp16 in fp16.",
  };
};

}  // namespace polyop

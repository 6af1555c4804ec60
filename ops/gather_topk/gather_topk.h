#pragma once

#include "core/operator.h"

namespace polyop {

/// Rows of `data` by the indices that a TopK found in each batch entry.
struct GatherTopk {
  static constexpr const char* kName = "gather_topk";
  static constexpr Signature kSignatures[] = {
      "data: T[N, ...C], indices: I[K] -> gathered: T[K, ...C]",
      "data: T[B, N, ...C], indices: I[B, K] -> gathered: T[B, K, ...C]",
      "data: T[A, B, N, ...C], indices: I[A, B, K] -> gathered: T[A, B, K, ...C]",
  };
  static constexpr NodeName kNodes[] = {"mmdeploy::GatherTopk"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Gathers rows of each batch entry by indices, as they come from TopK.",
      .semantics =
          "gathered[b, k, ...] = data[b, indices[b, k], ...]. `indices` has one to three dimensions; all but the "
          "last are batch dimensions, which `data` has too. An index that is negative or not below N is an error. "
          "`indices` are i32 or i64.",
      .source = "`data[arange(B)[:, None], indices]` in torch",
      .differences = "MMDeploy's TensorRT plugin takes fp32 and i32 data and i32 indices only and checks none.",
  };
};

}  // namespace polyop

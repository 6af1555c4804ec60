// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Gathers rows of `data` by the indices that TopK returns for each batch element.
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
      .summary = "Gathers rows of each batch element by indices, such as those of TopK.",
      .semantics = R"(gathered[b, k, ...] = data[b, indices[b, k], ...]. `indices` has one to three dimensions; all but
          the last are batch dimensions and are the leading dimensions of `data`. An index that is not in [0, N) is an
          error. `indices` is i32 or i64.)",
      .source = "`data[arange(B)[:, None], indices]` in PyTorch",
      .differences = R"(MMDeploy's TensorRT plugin accepts fp32 and i32 data and i32 indices only, and does not check
          them.)",
  };
};

}  // namespace polyop

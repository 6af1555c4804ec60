// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Finds the distinct integers of a tensor, in ascending order.
struct CustomUnique {
  static constexpr const char* kName = "custom_unique";
  static constexpr Signature kSignature = "x: I[N] -> unique: I[U<=N], inverse: i64[N], counts: i64[U], num: i64[]";
  static constexpr NodeName kNodes[] = {"autoware::CustomUnique", "polyop::CustomUnique", "::CustomUnique"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = R"(Returns the distinct integers in ascending order, their counts, and the index of each element among
          them.)",
      .semantics = R"(unique[inverse[i]] = x[i]; counts[u] is the number of elements equal to unique[u]; num is U. `x`
          has at most 2147483647 elements.)",
      .source = "`torch.unique` with return_inverse and return_counts, as Autoware exports Point Transformer V3",
      .differences = R"(ONNX's Unique has its outputs in another order, and additionally returns the first index of each
          integer.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs[0].shape[0] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'x': expected at most 2147483647 elements, got ", inputs[0].shape[0]);
  }
};

}  // namespace polyop

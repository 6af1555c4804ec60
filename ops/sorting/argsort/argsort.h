// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Computes the stable order of each row.
struct Argsort {
  int64_t descending = 0;

  static constexpr const char* kName = "argsort";
  static constexpr Signature kSignature = "x: T[...B, N] -> order: i64[...B, N]";
  static constexpr NodeName kNodes[] = {"autoware::Argsort", "polyop::Argsort", "::Argsort"};
  static constexpr std::tuple kAttributes = {
      Attr("descending", &Argsort::descending, "1: the greatest element comes first").Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Returns the indices that sort the elements of each row.",
      .semantics = R"(x[order[0]] <= x[order[1]] <= ..., or >= if descending. The sort is stable: of equal elements, the
          one with the lower index comes first. NaN is greater than every number, and equal to NaN; 0 and -0 are equal.
          `x` has at most 2147483647 elements.)",
      .source =
          "`torch.argsort` with stable=True; for integers of one dimension as Autoware exports Point Transformer "
          "V3",
      .differences = "torch.argsort is stable only with stable=True.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const std::optional<int64_t> count = inputs[0].shape.NumElements();
    if (count.has_value() && *count <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'x': expected at most 2147483647 elements, got shape ", ToString(inputs[0].shape));
  }
};

}  // namespace polyop

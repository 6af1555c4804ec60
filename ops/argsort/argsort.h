#pragma once

#include "core/operator.h"

namespace polyop {

/// Computes the stable order of integers.
struct Argsort {
  static constexpr const char* kName = "argsort";
  static constexpr Signature kSignature = "x: I[N] -> order: i64[N]";
  static constexpr NodeName kNodes[] = {"autoware::Argsort", "polyop::Argsort", "::Argsort"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Returns the indices that sort integers in ascending order.",
      .semantics = R"(x[order[0]] <= x[order[1]] <= ...; the sort is stable: of equal integers, the one with the lower
          index comes first. `x` has at most 2147483647 elements.)",
      .source = "`torch.argsort` with stable=True, as Autoware exports Point Transformer V3",
      .differences = "torch.argsort is stable only with stable=True.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs[0].shape[0] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'x': expected at most 2147483647 elements, got ", inputs[0].shape[0]);
  }
};

}  // namespace polyop

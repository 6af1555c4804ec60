#pragma once

#include "core/operator.h"

namespace polyop {

/// The places of integers in their rising order.
struct Argsort {
  static constexpr const char* kName = "argsort";
  static constexpr Signature kSignature = "x: I[N] -> order: i64[N]";
  static constexpr NodeName kNodes[] = {"autoware::Argsort", "polyop::Argsort", "::Argsort"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Gives the places of integers in rising order.",
      .semantics =
          "x[order[0]] <= x[order[1]] <= ...; of equal integers the lower place comes first. There may be at most "
          "2147483647.",
      .source = "`torch.argsort` with stable=True, as Autoware exports Point Transformer V3",
      .differences = "torch.argsort alone promises no order of equal integers.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs[0].shape[0] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'x' has ", inputs[0].shape[0], " elements, wanted at most 2147483647");
  }
};

}  // namespace polyop

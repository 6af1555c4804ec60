#pragma once

#include "core/operator.h"

namespace polyop {

/// The different integers among some, in rising order.
struct CustomUnique {
  static constexpr const char* kName = "custom_unique";
  static constexpr Signature kSignature = "x: I[N] -> unique: I[U<=N], inverse: i64[N], counts: i64[U], num: i64[]";
  static constexpr NodeName kNodes[] = {"autoware::CustomUnique", "polyop::CustomUnique", "::CustomUnique"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Gives the different integers in rising order, how often each occurs, and where each element went.",
      .semantics =
          "unique[inverse[i]] = x[i], counts[u] says how many elements are unique[u], num is U. There may be at most "
          "2147483647 elements.",
      .source = "`torch.unique` with return_inverse and return_counts, as Autoware exports Point Transformer V3",
      .differences = "ONNX's Unique has its outputs in another order, and the first place of each integer as well.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs[0].shape[0] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'x' has ", inputs[0].shape[0], " elements, wanted at most 2147483647");
  }
};

}  // namespace polyop

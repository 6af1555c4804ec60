// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/sequence/cummax/cummax.h"

namespace polyop {

/// The gradient of the running maximum or minimum: an element gets the gradients of the values that it is the extremum
/// of, which the saved indices tell.
struct CumMaxBackward : GradientOf<CumMax> {
  static constexpr const char* kName = "cummax_backward";
  static constexpr Signature kSignature =
      "grad_values: T[...S], input: T[...S], indices: i64[...S] -> grad_input: T[...S]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CumMax::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop

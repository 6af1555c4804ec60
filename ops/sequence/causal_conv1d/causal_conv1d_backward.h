// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/sequence/causal_conv1d/causal_conv1d.h"

namespace polyop {

/// The gradients of CausalConv1d with respect to all inputs.
struct CausalConv1dBackward : GradientOf<CausalConv1d> {
  static constexpr const char* kName = "causal_conv1d_backward";
  static constexpr Signature kSignature =
      "grad_output: T[batch, dim, length], grad_final_state: T[batch, dim, width - 1], x: T[batch, dim, length], "
      "weight: W[dim, width], bias?: W[dim], initial_state?: T[batch, dim, width - 1] -> "
      "grad_x?: T[batch, dim, length], grad_weight?: W[dim, width], grad_bias?: W[dim], "
      "grad_initial_state?: T[batch, dim, width - 1]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return ForwardOperator::CheckInputs(inputs.subspan(2));
  }
};

}  // namespace polyop

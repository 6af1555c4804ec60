// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/sequence/selective_scan/selective_scan.h"

namespace polyop {

/// The gradients of SelectiveScan with respect to all inputs. An absent `z` has the gradient 0.
struct SelectiveScanBackward : GradientOf<SelectiveScan> {
  static constexpr const char* kName = "selective_scan_backward";
  static constexpr Signature kSignature =
      "grad_output: T[batch, dim, length], grad_last_state: W[batch, dim, states], u: T[batch, dim, length], "
      "delta: T[batch, dim, length], A: W[dim, states], B: T[batch, groups, states, length], "
      "C: T[batch, groups, states, length], D?: W[dim], z?: T[batch, dim, length], delta_bias?: W[dim], "
      "initial_state?: W[batch, dim, states] -> grad_u?: T[batch, dim, length], grad_delta?: T[batch, dim, length], "
      "grad_A?: W[dim, states], grad_B?: T[batch, groups, states, length], grad_C?: T[batch, groups, states, length], "
      "grad_D?: W[dim], grad_z?: T[batch, dim, length], grad_delta_bias?: W[dim], "
      "grad_initial_state?: W[batch, dim, states]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return ForwardOperator::CheckInputs(inputs.subspan(2));
  }
};

}  // namespace polyop

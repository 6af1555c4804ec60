// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// The state space model of Mamba: a linear recurrence whose coefficients depend on the step.
struct SelectiveScan {
  bool delta_softplus = false;

  static constexpr const char* kName = "selective_scan";
  static constexpr Signature kSignature =
      "u: T[batch, dim, length], delta: T[batch, dim, length], A: W[dim, states], "
      "B: T[batch, groups, states, length], C: T[batch, groups, states, length], D?: W[dim], "
      "z?: T[batch, dim, length], delta_bias?: W[dim], initial_state?: W[batch, dim, states] -> "
      "output: T[batch, dim, length], last_state: W[batch, dim, states]";
  static constexpr NodeName kNodes[] = {"polyop::SelectiveScan"};
  static constexpr std::tuple kAttributes = {
      Attr("delta_softplus", &SelectiveScan::delta_softplus,
           "1: the step size is log(1 + exp(delta + delta_bias)); 0: it is delta + delta_bias"),
  };
  static constexpr Doc kDoc = {
      .summary = "The selective scan of Mamba: a linear recurrence with coefficients that depend on the step.",
      .semantics = R"(Each channel c has a state h of `states` numbers, which starts as `initial_state`, or as 0. For
          each step l, with the step size d: h[s] = exp(d * A[c, s]) * h[s] + d * u[l] * B[g, s, l]; y[l] = sum over s of
          h[s] * C[g, s, l], plus D[c] * u[l]. The output is y, or y * z * sigmoid(z) if `z` is given. `last_state` is h
          after the last step. The channels are divided into `groups` equal parts, each with its own B and C: g = c /
          (dim / groups).

          A is real; for a state that does not grow it is negative and the step size positive. Everything is computed in
          fp32. Without steps, `last_state` is the initial state. One step with an initial state is the update of a model
          that generates token by token. In PyTorch, differentiable with respect to all inputs.)",
      .source = R"(A. Gu, T. Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, 2023;
          `mamba_ssm.ops.selective_scan_interface.selective_scan_fn`)",
      .differences =
          R"(mamba_ssm also accepts a complex A, and B and C that are the same for all steps; its function has
          no initial state, and its last state has no gradient.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t dim = inputs[0].shape[1], groups = inputs[3].shape[1];
    if (groups > 0 ? dim % groups == 0 : dim == 0) return Status::Ok();
    return InvalidArgument("'B': expected a number of groups that divides the ", dim, " channels of 'u', got ", groups);
  }
};

}  // namespace polyop

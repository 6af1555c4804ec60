// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// A depthwise convolution of sequences, whose windows end at their step.
struct CausalConv1d {
  enum class Activation { kNone, kSilu };
  Activation activation = Activation::kNone;

  static constexpr const char* kName = "causal_conv1d";
  static constexpr Signature kSignature =
      "x: T[batch, dim, length], weight: W[dim, width], bias?: W[dim], initial_state?: T[batch, dim, width - 1] -> "
      "output: T[batch, dim, length], final_state: T[batch, dim, width - 1]";
  static constexpr NodeName kNodes[] = {"polyop::CausalConv1d"};
  static constexpr std::tuple kAttributes = {
      Attr("activation", &CausalConv1d::activation, "silu: the result y becomes y * sigmoid(y)").OneOf("none", "silu"),
  };
  static constexpr Doc kDoc = {
      .summary = "A depthwise convolution of sequences, whose windows end at their step (Mamba, Hyena, RWKV).",
      .semantics = R"(output[n, c, l] = bias[c] + sum over k of weight[c, k] * p[l + k], where p is `initial_state`, or
          width - 1 zeros, followed by x[n, c]. `final_state` is the last width - 1 elements of p: the initial state of
          the steps that follow. Computed in fp32. In PyTorch, differentiable with respect to all inputs.)",
      .source = R"(A. Gu, T. Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, 2023;
          `causal_conv1d.causal_conv1d_fn`)",
      .differences = "causal_conv1d supports widths of 2 to 4; this operator supports all.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs[1].shape[1] > 0) return Status::Ok();
    return InvalidArgument("'weight': expected a width of at least 1, got ", ToString(inputs[1].shape));
  }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// Activation after a sparse convolution, on CPU and GPU.
#pragma once

#include <cmath>

#include "core/host_device.h"

namespace polyop {

enum class SparseActivation { kNone, kRelu, kSigmoid, kLeakyRelu };

/// The activation function and its parameter. NaN stays NaN.
struct ActivationRule {
  SparseActivation type = SparseActivation::kNone;
  float alpha = 0;  // slope of leaky ReLU for negative numbers

  template <class F>
  POLYOP_HD F operator()(F x) const {
    switch (type) {
      case SparseActivation::kRelu: return x < 0 ? F{0} : x;
      case SparseActivation::kSigmoid: return 1 / (1 + std::exp(-x));
      case SparseActivation::kLeakyRelu: return x < 0 ? x * static_cast<F>(alpha) : x;
      default: return x;
    }
  }

  /// Returns the gradient of the argument for a gradient of the result `y`. Requires: alpha >= 0.
  template <class F>
  POLYOP_HD F Backward(F grad, F y) const {
    switch (type) {
      case SparseActivation::kRelu: return y <= 0 ? F{0} : grad;
      case SparseActivation::kSigmoid: return grad * y * (1 - y);
      case SparseActivation::kLeakyRelu: return y > 0 ? grad : alpha == 0 ? F{0} : grad * static_cast<F>(alpha);
      default: return grad;
    }
  }
};

}  // namespace polyop

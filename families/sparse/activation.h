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
};

}  // namespace polyop

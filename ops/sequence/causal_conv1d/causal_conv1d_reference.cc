// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/sequence/causal_conv1d/causal_conv1d.h"

namespace polyop {
namespace {

Status CausalConv1dReference(const CausalConv1d& op, const Context&, Tensor<const double, 3> x,
                             Tensor<const double, 2> weight, std::optional<Tensor<const double, 1>> bias,
                             std::optional<Tensor<const double, 3>> initial_state, Tensor<double, 3> output,
                             Tensor<double, 3> final_state) {
  const int64_t dim = x.dim(1), length = x.dim(2), width = weight.dim(1), before = width - 1;
  for (int64_t row = 0; row < x.dim(0) * dim; ++row) {
    const auto padded = [&](int64_t i) {
      if (i >= before) return x[row * length + i - before];
      return initial_state ? (*initial_state)[row * before + i] : 0.0;
    };
    for (int64_t l = 0; l < length; ++l) {
      double y = bias ? (*bias)[row % dim] : 0.0;
      for (int64_t k = 0; k < width; ++k) y += weight[row % dim * width + k] * padded(l + k);
      output[row * length + l] = op.activation == CausalConv1d::Activation::kSilu ? y / (1 + std::exp(-y)) : y;
    }
    for (int64_t i = 0; i < before; ++i) final_state[row * before + i] = padded(length + i);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CausalConv1d, CausalConv1dReference);

}  // namespace
}  // namespace polyop

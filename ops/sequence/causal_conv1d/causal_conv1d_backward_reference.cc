// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/sequence/causal_conv1d/causal_conv1d_backward.h"

namespace polyop {
namespace {

Status CausalConv1dBackwardReference(
    const CausalConv1dBackward& op, const Context&, Tensor<const double, 3> grad_output,
    Tensor<const double, 3> grad_final_state, Tensor<const double, 3> x, Tensor<const double, 2> weight,
    std::optional<Tensor<const double, 1>> bias, std::optional<Tensor<const double, 3>> initial_state,
    std::optional<Tensor<double, 3>> grad_x, std::optional<Tensor<double, 2>> grad_weight,
    std::optional<Tensor<double, 1>> grad_bias, std::optional<Tensor<double, 3>> grad_initial_state) {
  const int64_t dim = x.dim(1), length = x.dim(2), width = weight.dim(1), before = width - 1;
  for (int64_t i = 0; grad_weight && i < grad_weight->size(); ++i) (*grad_weight)[i] = 0;
  for (int64_t i = 0; grad_bias && i < grad_bias->size(); ++i) (*grad_bias)[i] = 0;
  for (int64_t row = 0; row < x.dim(0) * dim; ++row) {
    const int64_t c = row % dim;
    std::vector<double> padded(before + length, 0.0), of_padded(before + length, 0.0);
    for (int64_t i = 0; i < before + length; ++i) {
      if (i >= before) padded[i] = x[row * length + i - before];
      if (i < before && initial_state) padded[i] = (*initial_state)[row * before + i];
    }
    for (int64_t i = 0; i < before; ++i) of_padded[length + i] += grad_final_state[row * before + i];
    for (int64_t l = 0; l < length; ++l) {
      double y = bias ? (*bias)[c] : 0.0, of_y = grad_output[row * length + l];
      for (int64_t k = 0; k < width; ++k) y += weight[c * width + k] * padded[l + k];
      const double sigmoid = 1 / (1 + std::exp(-y));
      if (op.activation == CausalConv1d::Activation::kSilu) of_y *= sigmoid * (1 + y * (1 - sigmoid));
      if (grad_bias) (*grad_bias)[c] += of_y;
      for (int64_t k = 0; k < width; ++k) {
        of_padded[l + k] += weight[c * width + k] * of_y;
        if (grad_weight) (*grad_weight)[c * width + k] += padded[l + k] * of_y;
      }
    }
    for (int64_t l = 0; grad_x && l < length; ++l) (*grad_x)[row * length + l] = of_padded[before + l];
    for (int64_t i = 0; grad_initial_state && i < before; ++i) {
      (*grad_initial_state)[row * before + i] = of_padded[i];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CausalConv1dBackward, CausalConv1dBackwardReference);

}  // namespace
}  // namespace polyop

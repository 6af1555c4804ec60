// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/sequence/causal_conv1d/causal_conv1d.h"

namespace polyop {
namespace {

// Each thread computes one element of the output, then one of the final state.
template <class T, class W>
Status CausalConv1dCuda(const CausalConv1d& op, const CudaContext& cuda, Tensor<const T, 3> x,
                        Tensor<const W, 2> weight, std::optional<Tensor<const W, 1>> bias,
                        std::optional<Tensor<const T, 3>> initial_state, Tensor<T, 3> output,
                        Tensor<T, 3> final_state) {
  const int64_t dim = x.dim(1), length = x.dim(2), width = weight.dim(1), before = width - 1;
  const T *const from = x.data(), *const state = initial_state ? initial_state->data() : nullptr;
  const W *const weights = weight.data(), *const biases = bias ? bias->data() : nullptr;
  T *const to = output.data(), *const last = final_state.data();
  const bool silu = op.activation == CausalConv1d::Activation::kSilu;
  const Divider by_length(length), by_dim(dim), by_before(before);
  // Returns element i of the state followed by the row.
  const auto padded = [=] POLYOP_DEVICE(int64_t row, int64_t i) {
    if (i >= before) return ToFloat(from[row * length + i - before]);
    return state == nullptr ? 0.0f : ToFloat(state[row * before + i]);
  };
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t element) {
    int64_t l, c;
    const int64_t row = by_length.Split(element, &l);
    by_dim.Split(row, &c);
    float y = biases == nullptr ? 0.0f : ToFloat(biases[c]);
    for (int64_t k = 0; k < width; ++k) y += ToFloat(weights[c * width + k]) * padded(row, l + k);
    to[element] = FromFloat<T>(silu ? y / (1 + std::exp(-y)) : y);
  }));
  return ForEach(cuda, final_state.size(), [=] POLYOP_DEVICE(int64_t element) {
    int64_t i;
    const int64_t row = by_before.Split(element, &i);
    last[element] = FromFloat<T>(padded(row, length + i));
  });
}

POLYOP_CUDA_KERNELS(CausalConv1d, CausalConv1dCuda, (float, float), (Half, Half), (BFloat16, BFloat16), (Half, float),
                    (BFloat16, float));

}  // namespace
}  // namespace polyop

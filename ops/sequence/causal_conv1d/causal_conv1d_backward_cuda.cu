// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_reduce.h"
#include "ops/sequence/causal_conv1d/causal_conv1d_backward.h"

namespace polyop {
namespace {

// The gradients of the sums before the activation are computed first, in float. Each thread then computes an element of
// the gradients of x and the initial state; each block the gradient of a weight or of a bias.
template <class T, class W>
Status CausalConv1dBackwardCuda(const CausalConv1dBackward& op, const CudaContext& cuda, Tensor<const T, 3> grad_output,
                                Tensor<const T, 3> grad_final_state, Tensor<const T, 3> x, Tensor<const W, 2> weight,
                                std::optional<Tensor<const W, 1>> bias, std::optional<Tensor<const T, 3>> initial_state,
                                std::optional<Tensor<T, 3>> grad_x, std::optional<Tensor<W, 2>> grad_weight,
                                std::optional<Tensor<W, 1>> grad_bias, std::optional<Tensor<T, 3>> grad_initial_state) {
  const int64_t batch = x.dim(0), dim = x.dim(1), length = x.dim(2), width = weight.dim(1), before = width - 1;
  const T *const from = x.data(), *const state = initial_state ? initial_state->data() : nullptr;
  const T *const outputs = grad_output.data(), *const finals = grad_final_state.data();
  const W *const weights = weight.data(), *const biases = bias ? bias->data() : nullptr;
  const bool silu = op.activation == CausalConv1d::Activation::kSilu;
  const Divider by_length(length), by_dim(dim), by_all(before + length), by_width(width + 1);
  float* const of_y = cuda.Allocate<float>(x.size());
  const auto padded = [=] POLYOP_DEVICE(int64_t row, int64_t i) {
    if (i >= before) return ToFloat(from[row * length + i - before]);
    return state == nullptr ? 0.0f : ToFloat(state[row * before + i]);
  };
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, x.size(), [=] POLYOP_DEVICE(int64_t element) {
    int64_t l, c;
    const int64_t row = by_length.Split(element, &l);
    by_dim.Split(row, &c);
    float slope = 1;
    if (silu) {
      float y = biases == nullptr ? 0.0f : ToFloat(biases[c]);
      for (int64_t k = 0; k < width; ++k) y += ToFloat(weights[c * width + k]) * padded(row, l + k);
      const float sigmoid = 1 / (1 + std::exp(-y));
      slope = sigmoid * (1 + y * (1 - sigmoid));
    }
    of_y[element] = ToFloat(outputs[element]) * slope;
  }));
  T* const of_x = grad_x ? grad_x->data() : nullptr;
  T* const of_state = grad_initial_state ? grad_initial_state->data() : nullptr;
  if (of_x != nullptr || of_state != nullptr) {
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, batch * dim * (before + length), [=] POLYOP_DEVICE(int64_t element) {
      int64_t i, c;
      const int64_t row = by_all.Split(element, &i);
      by_dim.Split(row, &c);
      float sum = i >= length ? ToFloat(finals[row * before + i - length]) : 0.0f;
      for (int64_t k = 0; k < width; ++k) {
        const int64_t l = i - k;
        if (l >= 0 && l < length) sum += ToFloat(weights[c * width + k]) * of_y[row * length + l];
      }
      if (i >= before && of_x != nullptr) of_x[row * length + i - before] = FromFloat<T>(sum);
      if (i < before && of_state != nullptr) of_state[row * before + i] = FromFloat<T>(sum);
    }));
  }
  W* const of_weight = grad_weight ? grad_weight->data() : nullptr;
  W* const of_bias = grad_bias ? grad_bias->data() : nullptr;
  if (of_weight == nullptr && of_bias == nullptr) return Status::Ok();
  constexpr int kThreads = 128;
  return ForBlocks<kThreads>(cuda, dim * (width + 1), kThreads, kThreads * 4, [=] POLYOP_DEVICE(Block& block) {
    float* const sums = block.Shared<float>(kThreads);
    int64_t k;
    const int64_t c = by_width.Split(block.index, &k);
    block.ForThreads([&](int t) {
      float sum = 0;
      for (int64_t n = 0; n < batch; ++n) {
        const int64_t row = n * dim + c;
        for (int64_t l = t; l < length; l += kThreads) {
          sum += of_y[row * length + l] * (k == width ? 1.0f : padded(row, l + k));
        }
      }
      sums[t] = sum;
    });
    ReduceBlock(block, sums, kThreads, [](float a, float b) { return a + b; });
    block.ForThreads([&](int t) {
      if (t != 0) return;
      if (k == width && of_bias != nullptr) of_bias[c] = FromFloat<W>(sums[0]);
      if (k < width && of_weight != nullptr) of_weight[c * width + k] = FromFloat<W>(sums[0]);
    });
  });
}

POLYOP_CUDA_KERNELS(CausalConv1dBackward, CausalConv1dBackwardCuda, (float, float), (Half, Half), (BFloat16, BFloat16),
                    (Half, float), (BFloat16, float));

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/causal_conv1d/causal_conv1d_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/sequence/causal_conv1d/causal_conv1d_backward.h"
#include "ops/sequence/causal_conv1d/causal_conv1d_rows-inl.h"
#include "ops/sequence/causal_conv1d/causal_conv1d_types.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kMargin = 64;  // vectors reach beyond the rows

// Returns the sum of a[i] * b[i].
inline double Dot(const float* a, const float* b, int64_t count) {
  const RowTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kBlock = 4096;  // products that are added in float
  double total = 0;
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t end = std::min(count, first + kBlock);
    auto sum = hn::Zero(d);
    int64_t i = first;
    for (; i + lanes <= end; i += lanes) sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
    total += hn::ReduceSum(d, sum);
    for (; i < end; ++i) total += a[i] * b[i];
  }
  return total;
}

// A task computes all rows of some channels, whose weights they share.
template <class Pair, class T = typename Pair::Real, class W = typename Pair::Weight>
Status CausalConv1dBackwardCpu(const CausalConv1dBackward& op, const Context& context, Tensor<const T, 3> grad_output,
                               Tensor<const T, 3> grad_final_state, Tensor<const T, 3> x, Tensor<const W, 2> weight,
                               std::optional<Tensor<const W, 1>> bias, std::optional<Tensor<const T, 3>> initial_state,
                               std::optional<Tensor<T, 3>> grad_x, std::optional<Tensor<W, 2>> grad_weight,
                               std::optional<Tensor<W, 1>> grad_bias, std::optional<Tensor<T, 3>> grad_initial_state) {
  const int64_t batch = x.dim(0), dim = x.dim(1), length = x.dim(2), width = weight.dim(1), before = width - 1;
  const int64_t grain = GrainFor(static_cast<double>(batch * length * (width + 4)) * 0.5 + static_cast<double>(width));
  const int64_t doubles = width + (width + 3 * (length + 2 * before + kMargin) + 1) / 2;
  const auto compute = [&](double* of_weights, int64_t begin, int64_t end) HWY_ATTR {
    const RowTag d;
    auto* const weights = reinterpret_cast<float*>(of_weights + width);
    float* const padded = weights + width;
    float* const of_y = padded + before + length + kMargin;  // with `before` zeros at both ends
    float* const row = of_y + 2 * before + length + kMargin;
    for (int64_t c = begin; c < end; ++c) {
      WidenRow(weight.data() + c * width, width, weights);
      std::fill_n(of_weights, width, 0.0);
      double of_bias = 0;
      for (int64_t n = 0; n < batch; ++n) {
        const int64_t r = n * dim + c;
        CopyState(initial_state, r, before, padded);
        WidenRow(x.data() + r * length, length, padded + before);
        std::fill_n(of_y, before, 0.0f);
        WidenRow(grad_output.data() + r * length, length, of_y + before);
        if (op.activation == CausalConv1d::Activation::kSilu) {
          ConvolveRow<1>(padded, weights, width, bias ? ToFloat((*bias)[c]) : 0.0f, length, row);
          ForVectors(length, [&](int64_t i) HWY_ATTR {
            const auto y = hn::LoadU(d, row + i), sigmoid = Sigmoid(y), one = hn::Set(d, 1.0f);
            const auto slope = hn::Mul(sigmoid, hn::MulAdd(y, hn::Sub(one, sigmoid), one));
            hn::StoreU(hn::Mul(hn::LoadU(d, of_y + before + i), slope), d, of_y + before + i);
          });
        }
        std::fill_n(of_y + before + length, before, 0.0f);
        for (int64_t l = 0; l < length; ++l) of_bias += of_y[before + l];
        for (int64_t k = 0; k < width; ++k) of_weights[k] += Dot(padded + k, of_y + before, length);
        // The gradient of element i is the sum over k of weight[k] * of_y[i - k].
        ConvolveRow<-1>(of_y + before, weights, width, 0, before + length, row);
        for (int64_t i = 0; i < before; ++i) row[length + i] += ToFloat(grad_final_state[r * before + i]);
        if (grad_initial_state) NarrowRow(row, before, grad_initial_state->data() + r * before);
        if (grad_x) NarrowRow(row + before, length, grad_x->data() + r * length);
      }
      for (int64_t k = 0; grad_weight && k < width; ++k) {
        (*grad_weight)[c * width + k] = FromFloat<W>(static_cast<float>(of_weights[k]));
      }
      if (grad_bias) (*grad_bias)[c] = FromFloat<W>(static_cast<float>(of_bias));
    }
  };
  if (context.ParallelForWithScratch<double>(dim, grain, doubles, compute)) return Status::Ok();
  return Internal("out of memory: rows of ", length, " steps");
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(CausalConv1dBackward, CausalConv1dBackwardCpu, ConvF32, ConvF16, ConvBF16, ConvF16ByF32,
                   ConvBF16ByF32);
}  // namespace polyop
#endif

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/causal_conv1d/causal_conv1d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/sequence/causal_conv1d/causal_conv1d.h"
#include "ops/sequence/causal_conv1d/causal_conv1d_rows-inl.h"
#include "ops/sequence/causal_conv1d/causal_conv1d_types.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kPiece = 2048;  // steps that a task holds in the cache
constexpr int64_t kMargin = 64;   // vectors reach beyond the rows

template <class Pair, class T = typename Pair::Real, class W = typename Pair::Weight>
Status CausalConv1dCpu(const CausalConv1d& op, const Context& context, Tensor<const T, 3> x, Tensor<const W, 2> weight,
                       std::optional<Tensor<const W, 1>> bias, std::optional<Tensor<const T, 3>> initial_state,
                       Tensor<T, 3> output, Tensor<T, 3> final_state) {
  const int64_t dim = x.dim(1), length = x.dim(2), width = weight.dim(1), before = width - 1;
  const int64_t rows = x.dim(0) * dim, piece = std::min(kPiece, length);
  const int64_t grain = GrainFor(static_cast<double>(length * (width + 4)) * 0.2 + static_cast<double>(width) + 50);
  const int64_t floats = 2 * (piece + kMargin) + before + width;
  const Scratch<float> memory = context.Allocate<float>(Context::NumTasks(rows, grain) * floats);
  if (!memory) return Internal("out of memory: rows of ", length, " steps");
  context.ParallelFor(rows, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    const RowTag d;
    float* const weights = memory.data() + task * floats;
    float* const padded = weights + width;
    float* const row = padded + before + piece + kMargin;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t c = r % dim;
      WidenRow(weight.data() + c * width, width, weights);
      CopyState(initial_state, r, before, padded);
      for (int64_t l = 0; l < length; l += kPiece) {
        const int64_t count = std::min(kPiece, length - l);
        WidenRow(x.data() + r * length + l, count, padded + before);
        ConvolveRow<1>(padded, weights, width, bias ? ToFloat((*bias)[c]) : 0.0f, count, row);
        if (op.activation == CausalConv1d::Activation::kSilu) {
          ForVectors(count, [&](int64_t i) HWY_ATTR {
            const auto y = hn::LoadU(d, row + i);
            hn::StoreU(hn::Mul(y, Sigmoid(y)), d, row + i);
          });
        }
        NarrowRow(row, count, output.data() + r * length + l);
        std::copy_n(padded + count, before, padded);  // forwards: the ranges may overlap
      }
      NarrowRow(padded, before, final_state.data() + r * before);
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(CausalConv1d, CausalConv1dCpu, ConvF32, ConvF16, ConvBF16, ConvF16ByF32, ConvBF16ByF32);
}  // namespace polyop
#endif

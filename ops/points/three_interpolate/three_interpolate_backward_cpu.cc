// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/three_interpolate/three_interpolate_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/check_indices.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/points/scatter_columns-inl.h"
#include "ops/points/three_interpolate/three_interpolate_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes the scalar products, over the channels, of a point's gradient and each of its three columns of features.
// Channels are copied to blocks, 16 at a time, for all points of a batch element.
template <class T, class I>
Status WeightsBackward(const Context& context, const Tensor<const T, 3>& grad, const Tensor<const T, 3>& features,
                       const I* idx, T* grad_weight) {
  constexpr int64_t kChunk = 256, kBlocksBytes = 32 << 20;
  const int64_t channels = grad.dim(1), points = grad.dim(2), columns = features.dim(2);
  const int64_t blocks = ChannelBlocks::BlocksFor(channels), chunks = (points + kChunk - 1) / kChunk;
  const int64_t block_bytes = std::max<int64_t>(columns * kBlockChannels * static_cast<int64_t>(sizeof(float)), 1);
  const int64_t at_once = std::clamp<int64_t>(kBlocksBytes / block_bytes, 1, std::max<int64_t>(blocks, 1));
  const Scratch<float> copy = context.Allocate<float>(at_once * columns * kBlockChannels);
  const Scratch<float> sums = context.Allocate<float>(3 * points);
  if (!copy || !sums) return Internal("out of memory: ", at_once, " blocks of ", columns, " columns");
  const double nanoseconds = static_cast<double>(kChunk * at_once) * 8;
  for (int64_t b = 0; b < grad.dim(0); ++b) {
    const I* const corners = idx + b * points * 3;
    std::fill_n(sums.data(), 3 * points, 0.0f);
    for (int64_t first = 0; first < blocks; first += at_once) {
      const int64_t some = std::min(at_once, blocks - first);
      const ChannelBlocks held = ToChannelBlocks(context, features.data() + b * channels * columns, 1, channels,
                                                 columns, copy.data(), first, some);
      context.ParallelFor(chunks, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
        HWY_ALIGN float tile[kChunk * kBlockChannels];
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          const int64_t n = chunk * kChunk, count = std::min(kChunk, points - n);
          for (int64_t block = 0; block < some; ++block) {
            const int64_t channel = (first + block) * kBlockChannels;
            const float* const pixels = held.Block(0, block);
            InterleaveChannels(grad.data() + (b * channels + channel) * points + n,
                               std::min(kBlockChannels, channels - channel), points, count, tile);
            for (int64_t i = 0; i < count; ++i) {
              BlockSum g;
              g.Load(tile + i * kBlockChannels);
              for (int64_t k = 3 * (n + i); k < 3 * (n + i) + 3; ++k) {
                BlockSum f;
                f.Load(pixels + int64_t{corners[k]} * kBlockChannels);
                auto product = hn::Mul(g.v[0], f.v[0]);
                for (int64_t v = 1; v < kBlockVectors; ++v) product = hn::MulAdd(g.v[v], f.v[v], product);
                sums[k] += hn::ReduceSum(BlockTag(), product);
              }
            }
          }
        }
      });
    }
    for (int64_t k = 0; k < 3 * points; ++k) grad_weight[b * points * 3 + k] = FromFloat<T>(sums[k]);
  }
  return Status::Ok();
}

template <class Types, class T = typename Types::Real>
Status ThreeInterpolateBackwardCpu(const ThreeInterpolateBackward&, const Context& context,
                                   Tensor<const T, 3> grad_interpolated, Tensor<const T, 3> features,
                                   Tensor<const typename Types::Int, 3> idx, Tensor<const T, 3> weight,
                                   std::optional<Tensor<T, 3>> grad_features, std::optional<Tensor<T, 3>> grad_weight) {
  const int64_t columns = features.dim(2);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx.data(), idx.size(), columns, "a column of 'features'"));
  if (grad_features) {
    POLYOP_RETURN_IF_ERROR(ScatterColumns(
        context, grad_interpolated.data(), idx.data(), features.dim(0), features.dim(1), idx.dim(1), 3, columns,
        [&](int64_t k) { return ToFloat(weight[k]); }, grad_features->data()));
  }
  if (!grad_weight) return Status::Ok();
  return WeightsBackward(context, grad_interpolated, features, idx.data(), grad_weight->data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ThreeInterpolateBackward, ThreeInterpolateBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32,
                   BF16I64);
}  // namespace polyop
#endif

// SPDX-License-Identifier: Apache-2.0
// Gradients of deformable attention on the GPU. Those of the values are atomic sums. Those of positions and weights
// have a fixed order of additions.
#pragma once

#include <optional>

#include "kernels/cuda/atomic_add.h"
#include "ops/deform/deform_attn_cuda.h"
#include "ops/sampling/bilinear_taps.h"

namespace polyop {

/// A sample's taps, whose pixels are numbered across all levels.
struct AttnTaps : BilinearTaps {
  float height, width;  // of the level

  POLYOP_HD static AttnTaps Of(const AttnPosition& at, const ZeroPaddedSample& sample) {
    AttnTaps taps;
    static_cast<BilinearTaps&>(taps) = BilinearTaps::Of(sample, at.y, at.x, at.weight);
    taps.height = static_cast<float>(at.level.height);
    taps.width = static_cast<float>(at.level.width);
    return taps;
  }
};

namespace deform_attn_internal {

// The samples of some (query, head) pairs, kTableSize at a time, in shared memory.
template <class Samples>
class TapsTable {
 public:
  using Common = typename Samples::Common;
  static constexpr int64_t kSharedBytes =
      kTableSize * static_cast<int64_t>(sizeof(AttnTaps)) + kThreads * static_cast<int64_t>(sizeof(Common)) + 32;

  static int64_t PairsPerBlock(int64_t samples) {
    return std::clamp<int64_t>(kTableSize / std::max<int64_t>(samples, 1), 1, kThreads);
  }

  POLYOP_DEVICE TapsTable(Block& block, const Samples& found, int64_t first, int64_t count)
      : found_(found),
        first_(first),
        count_(count),
        taps_(block.Shared<AttnTaps>(kTableSize)),
        common_(block.Shared<Common>(kThreads)) {}

  /// Calls visit(begin, held) for every table: its entries [0, held) are the samples from begin on, where sample s of
  /// pair `first + i` is sample i * samples + s.
  template <class Visit>
  POLYOP_DEVICE void ForEach(Block& block, const Divider& per_pair, const Visit& visit) const {
    block.ForThreads([&](int t) {
      if (t < count_) common_[t] = found_.CommonOf(first_ + t);
    });
    const int64_t all = count_ * found_.samples;
    for (int64_t begin = 0; begin < all; begin += kTableSize) {
      const int64_t held = all - begin < kTableSize ? all - begin : kTableSize;
      block.ForThreads([&](int t) {
        for (int64_t i = t; i < held; i += kThreads) {
          int64_t s;
          const int64_t pair = per_pair.Split(begin + i, &s);
          const AttnPosition at = found_.At(first_ + pair, s, common_[pair]);
          taps_[i] = AttnTaps::Of(at, found_.levels.Sample(at));
        }
      });
      visit(begin, held);
    }
  }
  POLYOP_DEVICE const AttnTaps& operator[](int64_t i) const { return taps_[i]; }

 private:
  const Samples& found_;
  const int64_t first_, count_;
  AttnTaps* const taps_;
  Common* const common_;
};

}  // namespace deform_attn_internal

/// Computes the gradient of DeformAttnCuda with respect to the values, from grad_output[N, Q, M, D]. A thread adds one
/// component of one sample to its pixels. A pixel whose weight is 0 is not touched, even if the gradient is NaN.
template <class T, class Samples>
Status DeformAttnValueBackwardCuda(const CudaContext& cuda, const T* grad_output, const Tensor<const T, 4>& value,
                                   int64_t queries, const Samples& found, T* grad_value) {
  using deform_attn_internal::kThreads;
  using Table = deform_attn_internal::TapsTable<Samples>;
  const int64_t images = value.dim(0), spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3);
  return SumAtomically(cuda, images * spatial, heads * depth, 1, grad_value, [&](const ChannelSums& sums) {
    const int64_t per_image = queries * heads, pairs = images * per_image, samples = found.samples;
    const int64_t group = Table::PairsPerBlock(samples);
    const Divider by_depth(depth), per_pair(std::max<int64_t>(samples, 1)), by_heads(heads), by_image(per_image);
    return ForBlocks(cuda, BlocksFor(pairs, group), kThreads, Table::kSharedBytes, [=] POLYOP_DEVICE(Block& block) {
      const int64_t first = block.index * group, count = pairs - first < group ? pairs - first : group;
      const Table table(block, found, first, count);
      table.ForEach(block, per_pair, [&](int64_t begin, int64_t held) {
        block.ForThreads([&](int t) {
          for (int64_t i = t; i < held * depth; i += kThreads) {
            int64_t d;
            const int64_t in_table = by_depth.Split(i, &d);
            const int64_t pair = first + per_pair.Quotient(begin + in_table);
            int64_t head;
            by_heads.Split(pair, &head);
            const int64_t channel = head * depth + d;
            if (!sums.Has(channel)) continue;
            const AttnTaps& taps = table[in_table];
            const float grad = ToFloat(grad_output[pair * depth + d]);
            const int64_t image = by_image.Quotient(pair) * spatial;
            for (int k = 0; k < 4; ++k) {
              const float weight = taps.Weight(k);
              if (taps.pixel[k] >= 0 && weight != 0) {
                AtomicAdd(sums.Plane(image + taps.pixel[k], channel), weight * grad);
              }
            }
          }
        });
      });
    });
  });
}

/// Computes the gradients of DeformAttnCuda with respect to positions and weights, from grad_output[N, Q, M, D]. Calls
/// sink.Write(pair, s, taps, grad) for each sample. Some neighbouring threads share a sample's products.
template <class T, class Samples, class Sink>
Status DeformAttnSamplesBackwardCuda(const CudaContext& cuda, const T* grad_output, const Tensor<const T, 4>& value,
                                     int64_t queries, const Samples& found, const Sink& sink) {
  using deform_attn_internal::kTableSize;
  using deform_attn_internal::kThreads;
  using Table = deform_attn_internal::TapsTable<Samples>;
  constexpr int kLanes = 8, kAtOnce = kThreads / kLanes;
  constexpr int64_t kShared = Table::kSharedBytes + (kTableSize + kThreads) * 4 * static_cast<int64_t>(sizeof(float));
  const int64_t spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3), samples = found.samples;
  const int64_t per_image = queries * heads, pairs = value.dim(0) * per_image;
  const int64_t group = Table::PairsPerBlock(samples);
  const Divider per_pair(std::max<int64_t>(samples, 1)), by_heads(heads), by_image(per_image);
  const T* const from = value.data();
  return ForBlocks(cuda, BlocksFor(pairs, group), kThreads, kShared, [=] POLYOP_DEVICE(Block& block) {
    const int64_t first = block.index * group, count = pairs - first < group ? pairs - first : group;
    const Table table(block, found, first, count);
    float* const dots = block.Shared<float>(kTableSize * 4);
    float* const parts = block.Shared<float>(kThreads * 4);
    table.ForEach(block, per_pair, [&](int64_t begin, int64_t held) {
      for (int64_t done = 0; done < held; done += kAtOnce) {
        block.ForThreads([&](int t) {
          const int64_t in_table = done + t / kLanes;
          if (in_table >= held) return;
          const AttnTaps& taps = table[in_table];
          const int64_t pair = first + per_pair.Quotient(begin + in_table);
          const T* const grad = grad_output + pair * depth;
          int64_t m;
          by_heads.Split(pair, &m);
          const T* const head = from + (by_image.Quotient(pair) * spatial * heads + m) * depth;
          for (int k = 0; k < 4; ++k) {
            float sum = 0;
            if (taps.pixel[k] >= 0) {
              const T* const pixel = head + taps.pixel[k] * heads * depth;
              for (int64_t d = t % kLanes; d < depth; d += kLanes) {
                sum = std::fma(ToFloat(grad[d]), ToFloat(pixel[d]), sum);
              }
            }
            parts[t * 4 + k] = sum;
          }
        });
        block.ForThreads([&](int t) {
          if (t >= kAtOnce * 4 || done + t / 4 >= held) return;
          float sum = 0;
          for (int lane = 0; lane < kLanes; ++lane) sum += parts[(t / 4 * kLanes + lane) * 4 + t % 4];
          dots[done * 4 + t] = sum;
        });
      }
      block.ForThreads([&](int t) {
        for (int64_t i = t; i < held; i += kThreads) {
          int64_t s;
          const int64_t pair = first + per_pair.Split(begin + i, &s);
          sink.Write(pair, s, table[i], BilinearSlopes::Of(table[i], dots + 4 * i));
        }
      });
    });
  });
}

/// Changes the gradients `of_weights` [pairs, samples] of softmax weights to those of the logits. The logits of a pair,
/// and their gradients, are at pair * step.
template <class T>
Status SoftmaxOfLogitsBackwardCuda(const CudaContext& cuda, int64_t pairs, int64_t samples, const float* of_weights,
                                   const T* logits, T* grad_logits, int64_t step) {
  return ForEach(cuda, pairs, [=] POLYOP_DEVICE(int64_t pair) {
    const T* const logit = logits + pair * step;
    const float* const grad = of_weights + pair * samples;
    const SoftmaxOfLogits softmax = SoftmaxOfLogits::Of(logit, samples);
    float mean = 0;
    for (int64_t s = 0; s < samples; ++s) mean += softmax.Weight(logit[s]) * grad[s];
    for (int64_t s = 0; s < samples; ++s) {
      grad_logits[pair * step + s] = FromFloat<T>(softmax.Weight(logit[s]) * (grad[s] - mean));
    }
  });
}

/// Writes gradients of normalised locations and of weights. Those that are not requested are null.
template <class T>
struct LocatedGrads {
  T *location, *weight;
  int64_t samples;

  POLYOP_DEVICE void Write(int64_t pair, int64_t s, const AttnTaps& taps, const BilinearSlopes& grad) const {
    const int64_t at = pair * samples + s;
    if (weight != nullptr) weight[at] = FromFloat<T>(grad.factor);
    if (location == nullptr) return;
    location[2 * at] = FromFloat<T>(grad.x * taps.width);
    location[2 * at + 1] = FromFloat<T>(grad.y * taps.height);
  }
};

/// The gradients of DeformAttnAtLocationsCuda. Those that are not requested are absent.
template <class T, class I>
Status DeformAttnAtLocationsBackwardCuda(const CudaContext& cuda, const T* grad_output, const Tensor<const T, 4>& value,
                                         const Tensor<const I, 2>& shapes, const Tensor<const I, 1>& starts,
                                         const Tensor<const T, 6>& locations, const T* weights,
                                         const std::optional<Tensor<T, 4>>& grad_value,
                                         const std::optional<Tensor<T, 6>>& grad_locations,
                                         const std::optional<Tensor<T, 5>>& grad_weights) {
  const int64_t points = locations.dim(4), samples = locations.dim(3) * points, queries = locations.dim(1);
  const LocatedSamples<T, I> found{
      {shapes.data(), starts.data(), value.dim(1)}, locations.data(), weights, points, samples};
  if (grad_locations || grad_weights) {
    const LocatedGrads<T> sink{grad_locations ? grad_locations->data() : nullptr,
                               grad_weights ? grad_weights->data() : nullptr, samples};
    POLYOP_RETURN_IF_ERROR(DeformAttnSamplesBackwardCuda(cuda, grad_output, value, queries, found, sink));
  }
  if (!grad_value) return cuda.Check();
  return DeformAttnValueBackwardCuda(cuda, grad_output, value, queries, found, grad_value->data());
}

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// Gradients of deformable attention on the GPU. Those of the values are atomic sums. Those of positions and weights
// have a fixed order of additions. One kernel computes all of them, so that pixels and output gradients are read once.
//
// 900 queries with 8 heads of 32 channels and 4 levels of 4 points are 115,200 samples of 4 pixels: 59 MB are read and
// 59 MB are added within L2, 0.03 ms of an H200 at 4 TB/s, and 29,000 steps of a warp with 4 samples and some 200
// instructions, 0.007 ms. 13,294 queries, those of all pixels, are 15 times as many: 0.4 ms and 0.1 ms. The four pixels
// of a sample are requested together, and a block has few samples, so that 900 queries occupy 7 blocks of each
// multiprocessor.
#pragma once

#include <optional>

#include "kernels/cuda/atomic_pack.h"
#include "kernels/cuda/warp_lanes.h"
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

// A sample of a table.
struct TableEntry : AttnTaps {
  int64_t pair;
  int64_t pixels;  // the first pixel of the pair's image
  int64_t head;
};

// The samples of some (query, head) pairs, kSize at a time, in shared memory.
template <class Samples>
class TapsTable {
 public:
  using Common = typename Samples::Common;
  static constexpr int kSize = kThreads;
  static constexpr int64_t kSharedBytes =
      kSize * static_cast<int64_t>(sizeof(TableEntry)) + kThreads * static_cast<int64_t>(sizeof(Common)) + 32;

  /// The grid of a call.
  struct Extents {
    int64_t pairs, group, spatial;  // all pairs, those of a block, and the pixels of an image
    Divider per_pair, heads, per_image;

    static Extents Of(const Shape& value, int64_t queries, int64_t samples) {
      const int64_t per_image = queries * value[2], each = std::max<int64_t>(samples, 1);
      return {value[0] * per_image,
              std::clamp<int64_t>(kSize / each, 1, kThreads),
              value[1],
              Divider(each),
              Divider(value[2]),
              Divider(per_image)};
    }
    int64_t blocks() const { return BlocksFor(pairs, group); }
  };

  POLYOP_DEVICE TapsTable(Block& block, const Samples& found, const Extents& extents)
      : found_(found),
        extents_(extents),
        first_(block.index * extents.group),
        count_(extents.pairs - first_ < extents.group ? extents.pairs - first_ : extents.group),
        entries_(block.Shared<TableEntry>(kSize)),
        common_(block.Shared<Common>(kThreads)) {}

  /// Calls visit(begin, held) for every table: its entries [0, held) are the samples from begin on of the block's.
  template <class Visit>
  POLYOP_DEVICE void ForEach(Block& block, const Visit& visit) const {
    block.ForThreads([&](int t) {
      if (t < count_) common_[t] = found_.CommonOf(first_ + t);
    });
    const int64_t all = count_ * found_.samples;
    for (int64_t begin = 0; begin < all; begin += kSize) {
      const int64_t held = all - begin < kSize ? all - begin : kSize;
      block.ForThreads([&](int t) {
        for (int64_t i = t; i < held; i += kThreads) entries_[i] = Find(begin + i);
      });
      visit(begin, held);
    }
  }
  POLYOP_DEVICE const TableEntry& operator[](int64_t i) const { return entries_[i]; }
  /// Returns which of its pair's samples entry i of the table from `begin` on is.
  POLYOP_DEVICE int64_t SampleOf(int64_t begin, int64_t i) const {
    int64_t s;
    extents_.per_pair.Split(begin + i, &s);
    return s;
  }

 private:
  POLYOP_DEVICE TableEntry Find(int64_t number) const {
    int64_t s;
    const int64_t in_block = extents_.per_pair.Split(number, &s);
    const AttnPosition at = found_.At(first_ + in_block, s, common_[in_block]);
    TableEntry entry;
    static_cast<AttnTaps&>(entry) = AttnTaps::Of(at, found_.levels.Sample(at));
    entry.pair = first_ + in_block;
    extents_.heads.Split(entry.pair, &entry.head);
    entry.pixels = extents_.per_image.Quotient(entry.pair) * extents_.spatial;
    return entry;
  }

  const Samples& found_;
  const Extents& extents_;
  const int64_t first_, count_;
  TableEntry* const entries_;
  Common* const common_;
};

// Adds the gradient of a sample to its pixels in `sums`, unless its data are null, and returns a lane's part of the
// slopes, which are 0 unless it reads the pixels. Neighbouring lanes have neighbouring packs of channels; `lane` is
// below kLanes. Requires: the values have pixels, if `reads`.
template <int kWide, int kLanes, class T>
POLYOP_DEVICE BilinearSlopes VisitSample(const TableEntry& entry, int lane, const T* grad_output, const T* value,
                                         int64_t heads, int64_t depth, const ChannelSums& sums, bool reads) {
  using Components = Pack<T, kWide>;
  using Sums = Pack<float, kWide>;
  const T* const grads = grad_output + entry.pair * depth;
  const int64_t channel = entry.head * depth;
  const T* const from = value + entry.pixels * heads * depth + channel;
  float dots[4] = {};
  for (int64_t d = lane * kWide; d < depth; d += kLanes * kWide) {
    const Components grad = *reinterpret_cast<const Components*>(grads + d);
    if (reads) {
      Components read[4];
      for (int k = 0; k < 4; ++k) {
        const int64_t pixel = entry.pixel[k] >= 0 ? entry.pixel[k] : 0;
        read[k] = *reinterpret_cast<const Components*>(from + pixel * heads * depth + d);
      }
      for (int k = 0; k < 4; ++k) {
        for (int c = 0; c < kWide; ++c) dots[k] = std::fma(ToFloat(grad.of[c]), ToFloat(read[k].of[c]), dots[k]);
      }
    }
    if (sums.data == nullptr || !sums.Has(channel + d)) continue;
    for (int k = 0; k < 4; ++k) {
      const float weight = entry.Weight(k);
      if (entry.pixel[k] < 0 || weight == 0) continue;
      Sums part;
      for (int c = 0; c < kWide; ++c) part.of[c] = weight * ToFloat(grad.of[c]);
      AtomicAdd(reinterpret_cast<Sums*>(sums.Plane(entry.pixels + entry.pixel[k], channel + d)), part);
    }
  }
  return BilinearSlopes::Of(entry, dots);
}

template <class T, class Samples, class Sink>
struct BackwardCall {
  const T* grad_output;
  Tensor<const T, 4> value;
  Samples found;
  typename TapsTable<Samples>::Extents extents;
  Sink sink;
};

// kLanes threads of a warp share a sample.
template <int kWide, int kLanes, class T, class Samples, class Sink>
Status VisitSamples(const CudaContext& cuda, const BackwardCall<T, Samples, Sink>& call, const ChannelSums& sums,
                    bool sloped) {
  using Table = TapsTable<Samples>;
  constexpr int kAtOnce = kWarpLanes / kLanes;
  const int64_t heads = call.value.dim(2), depth = call.value.dim(3);
  const T *const value = call.value.data(), *const grad_output = call.grad_output;
  const bool reads = sloped && call.value.dim(1) > 0;
  const auto found = call.found;
  const auto extents = call.extents;
  const Sink sink = call.sink;
  const auto visit = [=] POLYOP_DEVICE(Block& block) {
    // Where packs of sums are added by single additions, neighbouring lanes have neighbouring channels instead.
    constexpr int kUsed = kAddsPacksAtomically ? kWide : 1;
    const Table table(block, found, extents);
    table.ForEach(block, [&](int64_t begin, int64_t held) {
      block.ForWarps([&](int warp) {
        for (int64_t first = warp * kAtOnce; first < held; first += kThreads / kWarpLanes * kAtOnce) {
          Lanes<BilinearSlopes> slopes;
          ForLanes([&](int lane) {
            const int64_t i = first + lane / kLanes;
            BilinearSlopes part;
            if (i < held) {
              part = VisitSample<kUsed, kLanes>(table[i], lane % kLanes, grad_output, value, heads, depth, sums, reads);
            }
            slopes[lane] = part;
          });
          if (!sloped) continue;
          slopes.template Sum<1, kLanes>(
              [](const BilinearSlopes& a, const BilinearSlopes& b) { return BilinearSlopes::Sum(a, b); });
          ForLanes([&](int lane) {
            const int64_t i = first + lane / kLanes;
            if (lane % kLanes != 0 || i >= held) return;
            sink.Write(table[i].pair, table.SampleOf(begin, i), table[i], slopes[lane]);
          });
        }
      });
    });
  };
  return ForBlocks(cuda, call.extents.blocks(), kThreads, Table::kSharedBytes, visit);
}

}  // namespace deform_attn_internal

/// Computes the gradients of DeformAttnCuda, from grad_output[N, Q, M, D]: that of the values, if it exists, and those
/// of positions and weights, if `sloped`, by calls of sink.Write(pair, s, taps, grad) for each sample. A pixel whose
/// weight is 0 is not touched, even if the gradient is NaN.
template <class T, class Samples, class Sink>
Status DeformAttnBackwardCuda(const CudaContext& cuda, const T* grad_output, const Tensor<const T, 4>& value,
                              int64_t queries, const Samples& found, const std::optional<Tensor<T, 4>>& grad_value,
                              bool sloped, const Sink& sink) {
  namespace internal = deform_attn_internal;
  constexpr int kWide = 4, kLanes = 8;
  const int64_t depth = value.dim(3), channels = value.dim(2) * depth;
  const internal::BackwardCall<T, Samples, Sink> call{
      grad_output, value, found, internal::TapsTable<Samples>::Extents::Of(value.shape(), queries, found.samples),
      sink};
  using Components = Pack<T, kWide>;
  const bool wide = depth % kWide == 0 && Components::IsAligned(grad_output) && Components::IsAligned(value.data());
  return SumAtomicallyWithOthers(
      cuda, value.dim(0) * value.dim(1), channels, 1, grad_value, sloped,
      [&](const ChannelSums& sums, bool with_slopes) {
        const bool packs = wide && sums.count == channels && Pack<float, kWide>::IsAligned(sums.data);
        const auto visit = !packs               ? internal::VisitSamples<1, kLanes, T, Samples, Sink>
                           : depth <= kWide * 4 ? internal::VisitSamples<kWide, 4, T, Samples, Sink>
                                                : internal::VisitSamples<kWide, kLanes, T, Samples, Sink>;
        return visit(cuda, call, sums, with_slopes);
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
  const LocatedGrads<T> sink{grad_locations ? grad_locations->data() : nullptr,
                             grad_weights ? grad_weights->data() : nullptr, samples};
  return DeformAttnBackwardCuda(cuda, grad_output, value, queries, found, grad_value, grad_locations || grad_weights,
                                sink);
}

}  // namespace polyop

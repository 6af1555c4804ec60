// SPDX-License-Identifier: Apache-2.0
// Deformable attention on the GPU: sums weighted bilinear samples of several levels for every query and head.
//
// 13,294 queries with 8 heads of 32 channels and 4 levels of 4 points are 1.7 million samples of 4 pixels: 870 MB from
// L1 and L2, 0.16 ms of an H200 at 5.5 TB/s, less where samples of a block are near. 900 queries are 59 MB, 0.01 ms,
// and 8 loads one after the other, 0.003 ms, if those of two samples are requested together.
#pragma once

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/pack.h"
#include "ops/deform/attn_levels.h"
#include "ops/sampling/zero_padded_sample.h"

namespace polyop {

/// A sample at (y, x) in pixels of a level.
struct AttnPosition {
  AttnLevel level;
  float y, x, weight;
};

/// The levels in device memory; consecutive if `starts` is null. Pixels of a level that exceed 'value' count as
/// outside.
template <class I>
struct AttnLevelsCuda {
  const I *shapes, *starts;
  int64_t spatial;

  /// Returns the level, without pixels if it is not within 'value'.
  POLYOP_HD AttnLevel At(int64_t level) const {
    int64_t start = 0;
    if (starts != nullptr) {
      start = starts[level];
    } else {
      for (int64_t l = 0; l < level && start <= spatial; ++l) {
        const int64_t height = shapes[2 * l], width = shapes[2 * l + 1];
        if (height < 0 || width < 0 || height > spatial || width > spatial) return {};
        start += height * width;
      }
    }
    const int64_t height = shapes[2 * level], width = shapes[2 * level + 1];
    if (height > spatial || width > spatial || start < 0 || start >= spatial) return {};
    return {height, width, start};
  }
  /// Returns the sample's pixels, numbered across all levels; their weights include `weight`.
  POLYOP_HD ZeroPaddedSample Sample(const AttnPosition& at) const {
    const int64_t start = at.level.start;
    ZeroPaddedSample sample = ZeroPaddedSample::At(at.y, at.x, at.level.height, at.level.width, at.weight);
    for (int32_t& pixel : sample.pixel) {
      if (pixel >= 0) pixel = start + pixel < spatial ? static_cast<int32_t>(start + pixel) : -1;
    }
    return sample;
  }
  /// Returns the position of a normalised location (x, y): 0 to 1 across the level.
  template <class T>
  POLYOP_HD AttnPosition AtLocation(int64_t level, const T* location, float weight) const {
    const AttnLevel at = At(level);
    return {at, ToFloat(location[1]) * static_cast<float>(at.height) - 0.5f,
            ToFloat(location[0]) * static_cast<float>(at.width) - 0.5f, weight};
  }
};

/// Softmax statistics of a (query, head) pair whose weights are the softmax of logits.
struct SoftmaxOfLogits {
  float maximum, factor;

  template <class T>
  POLYOP_HD static SoftmaxOfLogits Of(const T* logits, int64_t count) {
    float maximum = -INFINITY, sum = 0;
    for (int64_t s = 0; s < count; ++s) maximum = ToFloat(logits[s]) > maximum ? ToFloat(logits[s]) : maximum;
    for (int64_t s = 0; s < count; ++s) sum += std::exp(ToFloat(logits[s]) - maximum);
    return {maximum, 1.0f / sum};
  }
  template <class T>
  POLYOP_HD float Weight(T logit) const {
    return std::exp(ToFloat(logit) - maximum) * factor;
  }
};

/// Samples with given weights at normalised locations: 0 to 1 across a level.
template <class T, class I>
struct LocatedSamples {
  struct Common {};
  AttnLevelsCuda<I> levels;
  const T *location, *weight;
  int64_t points, samples;

  POLYOP_HD Common CommonOf(int64_t) const { return {}; }
  POLYOP_HD AttnPosition At(int64_t pair, int64_t s, const Common&) const {
    const int64_t at = pair * samples + s;
    return levels.AtLocation(s / points, location + 2 * at, ToFloat(weight[at]));
  }
};

/// Samples of rows that hold the locations of a head, followed by its logits.
template <class T, class I>
struct RowSamples {
  using Common = SoftmaxOfLogits;
  AttnLevelsCuda<I> levels;
  const T* row;
  int64_t points, samples;

  POLYOP_HD Common CommonOf(int64_t pair) const { return Common::Of(row + (pair * 3 + 2) * samples, samples); }
  POLYOP_HD AttnPosition At(int64_t pair, int64_t s, const Common& common) const {
    const T* const mine = row + pair * 3 * samples;
    return levels.AtLocation(s / points, mine + 2 * s, common.Weight(mine[2 * samples + s]));
  }
};

/// Samples at offsets from reference points, weighted by the softmax of logits.
template <class T, class I>
struct OffsetSamples {
  using Common = SoftmaxOfLogits;
  AttnLevelsCuda<I> levels;
  const T *reference, *offset, *logit;
  int64_t heads, groups, points, samples;

  POLYOP_HD Common CommonOf(int64_t pair) const { return Common::Of(logit + pair * samples, samples); }
  /// Returns the reference point of a sample.
  POLYOP_HD int64_t Point(int64_t pair, int64_t s) const { return pair / heads * groups + s % points % groups; }
  POLYOP_HD AttnPosition At(int64_t pair, int64_t s, const Common& common) const {
    const int64_t at = pair * samples + s;
    const AttnLevel level = levels.At(s / points);
    const T* const point = reference + 2 * Point(pair, s);
    const float x = ToFloat(point[0]) * static_cast<float>(level.width) + ToFloat(offset[2 * at]) - 0.5f;
    const float y = ToFloat(point[1]) * static_cast<float>(level.height) + ToFloat(offset[2 * at + 1]) - 0.5f;
    return {level, y, x, common.Weight(logit[at])};
  }
};

/// Returns the OffsetSamples of tensors: references[B, Q, 1, R], offsets[B, Q, M, F] and logits[B, Q, M, F / 2].
template <class T, class I>
OffsetSamples<T, I> OffsetSamplesOf(const Tensor<const T, 4>& value, const Tensor<const I, 2>& shapes,
                                    const Tensor<const T, 4>& references, const T* offsets,
                                    const Tensor<const T, 4>& logits) {
  const int64_t samples = logits.dim(3), points = samples / std::max<int64_t>(shapes.dim(0), 1);
  return {{shapes.data(), nullptr, value.dim(1)},
          references.data(),
          offsets,
          logits.data(),
          value.dim(2),
          references.dim(3) / 2,
          points,
          samples};
}

namespace deform_attn_internal {

inline constexpr int kThreads = 128;
inline constexpr int kTableSize = 256;  // samples per block and round

// A block computes several (query, head) pairs: its threads find the samples of all of them, then each thread sums
// kWide components of one pair. Neighbouring threads read neighbouring components.
template <class T, int kWide, class Samples>
Status Attend(const CudaContext& cuda, const Tensor<const T, 4>& value, int64_t queries, const Samples& found,
              T* output) {
  using Components = Pack<T, kWide>;
  using Sums = Pack<float, kWide>;
  using Common = typename Samples::Common;
  const int64_t spatial = value.dim(1), heads = value.dim(2), parts = value.dim(3) / kWide, samples = found.samples;
  const auto* const from = reinterpret_cast<const Components*>(value.data());
  auto* const to = reinterpret_cast<Components*>(output);
  const int64_t per_image = queries * heads, pairs = value.dim(0) * per_image;
  // As many pairs as fill the threads and whose samples fit the table. The samples of a larger pair are processed in
  // several rounds.
  int64_t group = std::max<int64_t>(1, kThreads / parts);
  if (samples > 0) group = std::max<int64_t>(1, std::min(group, kTableSize / samples));
  const Divider by_parts(parts), per_pair(std::max<int64_t>(samples, 1));
  constexpr int64_t kShared =
      kTableSize * static_cast<int64_t>(sizeof(ZeroPaddedSample)) + kThreads * static_cast<int64_t>(sizeof(Common));
  return ForBlocks(cuda, BlocksFor(pairs, group), kThreads, kShared, [=] POLYOP_DEVICE(Block& block) {
    ZeroPaddedSample* const table = block.Shared<ZeroPaddedSample>(kTableSize);
    Common* const common = block.Shared<Common>(kThreads);
    const int64_t first = block.index * group, count = pairs - first < group ? pairs - first : group;
    block.ForThreads([&](int t) {
      if (t < count) common[t] = found.CommonOf(first + t);
    });
    // Outer rounds of one part per thread, inner rounds of one table of samples.
    for (int64_t round = 0; round < count * parts; round += kThreads) {
      Block::Local<Sums> sums(block);
      block.ForThreads([&](int t) {
        for (float& sum : sums[t].of) sum = 0;
      });
      for (int64_t begin = 0; begin < samples; begin += kTableSize) {
        const int64_t held = samples - begin < kTableSize ? samples - begin : kTableSize;
        if (round == 0 || samples > kTableSize) {
          block.ForThreads([&](int t) {
            for (int64_t i = t; i < count * held; i += kThreads) {
              const int64_t pair = held == samples ? per_pair.Quotient(i) : 0;
              table[i] = found.levels.Sample(found.At(first + pair, begin + i - pair * held, common[pair]));
            }
          });
        }
        block.ForThreads([&](int t) {
          if (round + t >= count * parts) return;
          int64_t part;
          const int64_t in_group = by_parts.Split(round + t, &part), pair = first + in_group;
          const Components* const image = from + (pair / per_image * spatial * heads + pair % heads) * parts + part;
          Sums own = sums[t];
          // Without branches between them, all loads of two samples are requested before the first is used.
          const int64_t visited = spatial > 0 ? held : 0;
#ifdef __CUDACC__
#pragma unroll 2
#endif
          for (int64_t s = 0; s < visited; ++s) {
            const ZeroPaddedSample sample = table[in_group * held + s];
            Components read[4];
            for (int k = 0; k < 4; ++k) {
              read[k] = image[(sample.pixel[k] >= 0 ? sample.pixel[k] : 0) * heads * parts];
            }
            for (int k = 0; k < 4; ++k) {
              const bool inside = sample.pixel[k] >= 0;
              for (int c = 0; c < kWide; ++c) {
                own.of[c] = inside ? std::fma(ToFloat(read[k].of[c]), sample.weight[k], own.of[c]) : own.of[c];
              }
            }
          }
          sums[t] = own;
        });
      }
      block.ForThreads([&](int t) {
        if (round + t >= count * parts) return;
        Components result;
        for (int c = 0; c < kWide; ++c) result.of[c] = FromFloat<T>(sums[t].of[c]);
        to[first * parts + round + t] = result;
      });
    }
  });
}

}  // namespace deform_attn_internal

/// Computes output[N, Q, M, D] from value[N, S, M, D]. `found` has `samples`, the number of samples per (query, head)
/// pair, and returns the position of sample s of pair (n * Q + q) * M + m, given the values that all samples of the
/// pair share.
template <class T, class Samples>
Status DeformAttnCuda(const CudaContext& cuda, const Tensor<const T, 4>& value, int64_t queries, const Samples& found,
                      T* output) {
  if (value.dim(1) > INT32_MAX) {
    return InvalidArgument("'value': expected at most 2147483647 pixels, got ", value.dim(1));
  }
  constexpr int kWide = 4;
  using Components = Pack<T, kWide>;
  const bool wide = value.dim(3) % kWide == 0 && Components::IsAligned(value.data()) && Components::IsAligned(output);
  const auto attend =
      wide ? deform_attn_internal::Attend<T, kWide, Samples> : deform_attn_internal::Attend<T, 1, Samples>;
  return attend(cuda, value, queries, found, output);
}

/// DeformAttnCuda with given weights, at normalised locations [N, Q, M, L, P, 2].
template <class T, class I>
Status DeformAttnAtLocationsCuda(const CudaContext& cuda, const Tensor<const T, 4>& value,
                                 const Tensor<const I, 2>& shapes, const Tensor<const I, 1>& starts,
                                 const Tensor<const T, 6>& locations, const T* weights, T* output) {
  const int64_t points = locations.dim(4);
  const LocatedSamples<T, I> samples{
      {shapes.data(), starts.data(), value.dim(1)}, locations.data(), weights, points, locations.dim(3) * points};
  return DeformAttnCuda(cuda, value, locations.dim(1), samples, output);
}

}  // namespace polyop

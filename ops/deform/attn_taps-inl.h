// SPDX-License-Identifier: Apache-2.0
// Samples of one head and query of deformable attention: converts positions to weighted pixels and sums these.
// Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_DEFORM_ATTN_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_DEFORM_ATTN_TAPS_INL_H_
#undef POLYOP_OPS_DEFORM_ATTN_TAPS_INL_H_
#else
#define POLYOP_OPS_DEFORM_ATTN_TAPS_INL_H_
#endif

#include <algorithm>

#include "hwy/cache_control.h"
#include "kernels/cpu/prefetch.h"
#include "kernels/cpu/quantized-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/deform/sample_levels.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Positions of the samples of one query and head, in pixels of their levels, and their weights. Padded by a vector.
struct AttnPositions {
  float *x, *y, *weight;
};

// Prefetches the row of a later query and of the head of `pair` (n * Q + q) * M + m; there are `pairs` rows of `size`
// elements. The rows of a head are too far from each other for the processor to prefetch them.
template <class T>
HWY_INLINE void PrefetchLaterQuery(const T* rows, int64_t pair, int64_t pairs, int64_t heads, int64_t size) {
  constexpr int64_t kQueries = 2;
  const int64_t later = pair + kQueries * heads;
  if (later < pairs) PrefetchRow(rows + later * size, size);
}

// Calls visit(i, x, y) with vectors of the pairs (x, y) of a row, starting at pair i. Lanes after the last pair are 0.
template <class T, class Visit>
HWY_INLINE void ForEachPair(const T* row, int64_t count, const Visit& visit) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    const T* const pairs = row + 2 * i;
    const int64_t left = 2 * (count - i);
    auto low = hn::Zero(d), high = hn::Zero(d);
    if (left >= 2 * lanes) {
      low = LoadFloat(d, pairs);
      high = LoadFloat(d, pairs + lanes);
    } else {
      low = LoadFloatN(d, pairs, static_cast<size_t>(std::min(left, lanes)));
      if (left > lanes) high = LoadFloatN(d, pairs + lanes, static_cast<size_t>(left - lanes));
    }
    visit(i, hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  }
}

// Sets the positions of samples from locations (x, y), which are normalised: 0 to 1 across a level.
template <class T>
HWY_INLINE void SetPositions(const SampleLevels& levels, const T* locations, const AttnPositions& positions) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto half = hn::Set(d, 0.5f);
  ForEachPair(locations, levels.samples(), [&](int64_t i, auto x, auto y) HWY_ATTR {
    hn::StoreU(hn::MulSub(x, hn::ConvertTo(d, hn::LoadU(di, levels.widths() + i)), half), d, positions.x + i);
    hn::StoreU(hn::MulSub(y, hn::ConvertTo(d, hn::LoadU(di, levels.heights() + i)), half), d, positions.y + i);
  });
}

// Sets the positions and weights of the samples of `pair` from normalised locations, and prefetches those of a later
// query.
template <class T>
HWY_INLINE void SetSamples(const SampleLevels& levels, const T* locations, const T* weights, int64_t pair,
                           int64_t pairs, int64_t heads, const AttnPositions& positions) {
  const int64_t samples = levels.samples();
  PrefetchLaterQuery(locations, pair, pairs, heads, samples * 2);
  PrefetchLaterQuery(weights, pair, pairs, heads, samples);
  SetPositions(levels, locations + pair * samples * 2, positions);
  WidenRow(weights + pair * samples, samples, positions.weight);
}

// Returns which of the vector of samples at (x, y) touch their level.
template <class V, class VI>
HWY_INLINE auto TouchesLevel(V y, V x, VI height, VI width) {
  const hn::ScalableTag<float> d;
  const auto outside = hn::Set(d, -1.0f);
  return hn::And(hn::And(hn::Gt(y, outside), hn::Lt(y, hn::ConvertTo(d, height))),
                 hn::And(hn::Gt(x, outside), hn::Lt(x, hn::ConvertTo(d, width))));
}

// Calls visit(corner, mask, pixel, weight) for the four corners of a vector of samples, which starts at sample i: upper
// left, upper right, lower left, lower right. The mask selects the corners within the level. Padding samples are in
// levels without pixels.
template <class Visit>
HWY_INLINE void ForEachCorner(const SampleLevels& levels, const AttnPositions& positions, int64_t i,
                              const Visit& visit) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto zero = hn::Zero(di), next = hn::Set(di, 1);
  const auto one = hn::Set(d, 1.0f);
  const auto height = hn::LoadU(di, levels.heights() + i), width = hn::LoadU(di, levels.widths() + i);
  const auto y = hn::LoadU(d, positions.y + i), x = hn::LoadU(d, positions.x + i);
  const auto inside = TouchesLevel(y, x, height, width);
  const auto whole_y = hn::Floor(hn::IfThenElseZero(inside, y)), whole_x = hn::Floor(hn::IfThenElseZero(inside, x));
  const auto row = hn::ConvertTo(di, whole_y), column = hn::ConvertTo(di, whole_x);
  const auto here = hn::RebindMask(di, inside);
  const auto upper = hn::And(here, hn::And(hn::Ge(row, zero), hn::Lt(row, height)));
  const auto lower = hn::And(here, hn::Lt(hn::Add(row, next), height));
  const auto left = hn::And(hn::Ge(column, zero), hn::Lt(column, width));
  const auto right = hn::Lt(hn::Add(column, next), width);
  const auto weight = hn::LoadU(d, positions.weight + i);
  const auto dy = hn::Sub(y, whole_y), dx = hn::Sub(x, whole_x);
  const auto in_upper = hn::Sub(one, dy), in_left = hn::Sub(one, dx);
  const auto pixel = hn::Add(hn::Add(hn::LoadU(di, levels.starts() + i), column), hn::Mul(row, width));
  visit(0, hn::And(upper, left), pixel, hn::Mul(hn::Mul(in_upper, in_left), weight));
  visit(1, hn::And(upper, right), hn::Add(pixel, next), hn::Mul(hn::Mul(in_upper, dx), weight));
  visit(2, hn::And(lower, left), hn::Add(pixel, width), hn::Mul(hn::Mul(dy, in_left), weight));
  visit(3, hn::And(lower, right), hn::Add(hn::Add(pixel, width), next), hn::Mul(hn::Mul(dy, dx), weight));
}

// The pixels of `value` that a head reads, with their weights.
template <class T>
class AttnTaps {
 public:
  // Returns the maximum number of taps for `samples` samples, without the padding by a vector that buffers need.
  static int64_t RoomFor(int64_t samples) { return 4 * samples; }
  AttnTaps(int32_t* pixels, float* weights) : pixels_(pixels), weights_(weights) {}

  // Finds the taps of all samples. Pixels outside of the level are omitted, thus a sample that is outside by a pixel or
  // more, or at NaN, has none. Pixel p of the head is at value + p * stride. Prefetches the pixels, which are
  // scattered, for Sum.
  HWY_INLINE void Find(const SampleLevels& levels, const AttnPositions& positions, const T* value, int64_t stride,
                       int64_t depth) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
    count_ = 0;
    for (int64_t i = 0; i < levels.samples(); i += lanes) {
      ForEachCorner(levels, positions, i,
                    [&](int, auto mask, auto pixel, auto weight) HWY_ATTR { Add(mask, pixel, weight); });
    }
    value_ = value;
    stride_ = stride;
    for (int64_t t = 0; t < count_; ++t) {
      const T* const from = Pixel(t);
      hwy::Prefetch(from);
      // The processor prefetches longer runs automatically.
      if (depth * static_cast<int64_t>(sizeof(T)) > 64) hwy::Prefetch(from + 64 / sizeof(T));
    }
  }

  // Sets to[0, depth) to the weighted sum of the pixels found, rounded to To.
  template <class To>
  void Sum(int64_t depth, To* to, const Requantize<To>& codes = {}) const {
    const hn::ScalableTag<float> d;
    int64_t at = SumVectors<4>(depth, 0, to, codes);
    at = SumVectors<2>(depth, at, to, codes);
    at = SumVectors<1>(depth, at, to, codes);
    if (at == depth) return;
    const size_t rest = static_cast<size_t>(depth - at);
    auto sum = hn::Zero(d);
    for (int64_t t = 0; t < count_; ++t) {
      sum = hn::MulAdd(LoadFloatN(d, Pixel(t) + at, rest), hn::Set(d, weights_[t]), sum);
    }
    StoreFloatN(sum, d, to + at, rest, codes);
  }

 private:
  template <class M, class VI, class V>
  HWY_INLINE void Add(M mask, VI pixel, V weight) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    hn::CompressStore(pixel, mask, di, pixels_ + count_);
    count_ += static_cast<int64_t>(hn::CompressStore(weight, hn::RebindMask(d, mask), d, weights_ + count_));
  }

  HWY_INLINE const T* Pixel(int64_t tap) const { return value_ + pixels_[tap] * stride_; }

  // Keeps kVectors vectors of sums in registers, which are independent of each other.
  template <int kVectors, class To>
  HWY_INLINE int64_t SumVectors(int64_t depth, int64_t at, To* to, const Requantize<To>& codes) const {
    constexpr int kTaps = kVectors == 4 ? 2 : 4;
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; at + kVectors * lanes <= depth; at += kVectors * lanes) {
      hn::Vec<decltype(d)> sum[kTaps][kVectors];
      for (auto& of_tap : sum) {
        for (auto& s : of_tap) s = hn::Zero(d);
      }
      const auto add = [&](int64_t tap, auto& to_sum) HWY_ATTR {
        const auto weight = hn::Set(d, weights_[tap]);
        const T* const pixel = Pixel(tap) + at;
        for (int v = 0; v < kVectors; ++v) to_sum[v] = hn::MulAdd(LoadFloat(d, pixel + v * lanes), weight, to_sum[v]);
      };
      int64_t t = 0;
      for (; t + kTaps <= count_; t += kTaps) {
        for (int k = 0; k < kTaps; ++k) add(t + k, sum[k]);
      }
      for (; t < count_; ++t) add(t, sum[0]);
      for (int v = 0; v < kVectors; ++v) {
        auto total = hn::Add(sum[0][v], sum[1][v]);
        if constexpr (kTaps == 4) total = hn::Add(total, hn::Add(sum[2][v], sum[3][v]));
        StoreFloat(total, d, to + at + v * lanes, codes);
      }
    }
    return at;
  }

  int32_t* const pixels_;
  float* const weights_;
  int64_t count_ = 0, stride_ = 0;
  const T* value_ = nullptr;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif

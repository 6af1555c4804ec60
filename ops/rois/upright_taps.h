// SPDX-License-Identifier: Apache-2.0
// The weighted rows and columns of pixels (taps) of the bins of an upright box, one axis at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/rois/roi_axis.h"

namespace polyop {

/// Number of pixels per axis of bins (two samples) for which the loops are unrolled.
constexpr int64_t kFour = 4;

/// The taps of the bins of an axis: bin b has taps [begin[b], begin[b + 1]). A bin is marked if its maximum includes 0.
struct AxisTaps {
  Tap* taps;
  int32_t* begin;

  bool Marked(int64_t bin) const { return begin[bin] < 0; }
  void Mark(int64_t bin) { begin[bin] = ~begin[bin]; }
  int32_t Begin(int64_t bin) const { return Marked(bin) ? ~begin[bin] : begin[bin]; }
};

/// A box and its taps.
struct UprightRoi {
  RoiAxis y, x;
  AxisTaps rows, columns;
  float scale = 0;      // 1 / samples
  bool four = false;    // every bin has kFour pixels on both axes
  bool differ = false;  // for a maximum: some pixel has different weights
};

/// Returns the maximum number of taps of all bins of an axis: two pixels per sample, `each` taps per pixel.
inline int64_t TapsBound(const RoiAxis& axis, int64_t bins, int64_t extent, int64_t each) {
  int64_t samples = 0;
  for (int64_t b = 0; b < bins; ++b) {
    int64_t begin = 0, end = 0;
    axis.Inside(b, extent, &begin, &end);
    samples += end - begin;
  }
  return std::max(2 * samples, bins * kFour) * each;  // room to pad
}

/// Calls visit(LinearTaps) for the samples of a bin that are inside, and returns their number. With `ascending`, their
/// positions ascend also in a reversed box.
template <class Visit>
int64_t ForEachInside(const RoiAxis& axis, int64_t bin, int64_t extent, const Visit& visit, bool ascending = false) {
  int64_t begin = 0, end = 0, inside = 0;
  axis.Inside(bin, extent, &begin, &end);
  for (int64_t s = begin; s < end; ++s) {
    const int64_t sample = ascending && axis.bin < 0 ? begin + end - 1 - s : s;
    const LinearTaps taps = RoiTaps(axis.Position(bin, sample), extent);
    if (!taps.inside) continue;
    ++inside;
    visit(taps);
  }
  return inside;
}

/// Fills the taps of averages; samples of a bin that share a pixel share a tap.
inline void FillMerged(const RoiAxis& axis, int64_t bins, int64_t extent, AxisTaps& out) {
  int32_t count = 0;
  for (int64_t b = 0; b < bins; ++b) {
    const int32_t first = out.begin[b] = count;
    const auto add = [&](int32_t index, float weight) {
      if (weight == 0) return;
      // Positions are monotonic: only the last two can match.
      for (int32_t t = count - 1; t >= std::max(first, count - 2); --t) {
        if (out.taps[t].index != index) continue;
        out.taps[t].weight += weight;
        return;
      }
      out.taps[count++] = {index, weight};
    };
    ForEachInside(axis, b, extent, [&](const LinearTaps& taps) {
      add(taps.low, taps.low_weight);
      add(taps.high, taps.high_weight);
    });
  }
  out.begin[bins] = count;
}

/// Fills the taps of maxima of samples: two taps per sample. Weights are never 0, which would turn infinite pixels into
/// NaN: the other pixel is repeated, each time with half of its weight. A sample outside is 0.
inline void FillSamples(const RoiAxis& axis, int64_t bins, int64_t extent, AxisTaps& out) {
  int32_t count = 0;
  for (int64_t b = 0; b < bins; ++b) {
    out.begin[b] = count;
    const int64_t inside = ForEachInside(axis, b, extent, [&](const LinearTaps& taps) {
      Tap low{taps.low, taps.low_weight}, high{taps.high, taps.high_weight};
      if (low.weight == 0 || high.weight == 0) {
        if (low.weight == 0) low = high;
        low.weight /= 2;
        high = low;
      }
      out.taps[count++] = low;
      out.taps[count++] = high;
    });
    if (inside < axis.samples) out.Mark(b);
  }
  out.begin[bins] = count;
}

/// Fills the taps of maxima of weighted pixels: two taps per pixel of a bin, with the largest and the smallest weight
/// in any sample, in ascending order of pixels. A pixel with weight 0, or of a sample outside, is 0. Returns whether
/// some pixel has two weights.
inline bool FillCorners(const RoiAxis& axis, int64_t bins, int64_t extent, AxisTaps& out) {
  int32_t count = 0;
  bool differ = false;
  for (int64_t b = 0; b < bins; ++b) {
    const int32_t first = out.begin[b] = count;
    bool zero = false;
    const auto add = [&](int32_t index, float weight) {
      zero = zero || weight == 0;
      if (weight == 0) return;
      for (int32_t t = count - 2; t >= std::max(first, count - 4); t -= 2) {
        if (out.taps[t].index != index) continue;
        out.taps[t].weight = std::max(out.taps[t].weight, weight);
        out.taps[t + 1].weight = std::min(out.taps[t + 1].weight, weight);
        differ = true;
        return;
      }
      out.taps[count++] = {index, weight};
      out.taps[count++] = {index, weight};
    };
    const auto add_both = [&](const LinearTaps& taps) {
      add(taps.low, taps.low_weight);
      add(taps.high, taps.high_weight);
    };
    const int64_t inside = ForEachInside(axis, b, extent, add_both, /*ascending=*/true);
    if (zero || inside < axis.samples) out.Mark(b);
  }
  out.begin[bins] = count;
  return differ;
}

/// Pads every bin to kFour pixels by repeating its last one. In a maximum, with two taps `each`, it is repeated as it
/// is; in a sum, each time with half of the remaining weight, because weights of 0 would turn infinite pixels into NaN.
/// Returns false and changes nothing if a bin has no taps or too many.
inline bool PadToFour(AxisTaps& axis, int64_t bins, int64_t each) {
  const int64_t room = kFour * each;
  for (int64_t b = 0; b < bins; ++b) {
    const int64_t count = axis.Begin(b + 1) - axis.Begin(b);
    if (count == 0 || count > room) return false;
  }
  for (int64_t b = bins; b-- > 0;) {  // from the end, because bins only move up
    const int64_t from = axis.Begin(b), count = axis.Begin(b + 1) - from;
    Tap padded[2 * kFour];
    for (int64_t t = 0; t < room; ++t) {
      padded[t] = axis.taps[from + (t < count ? t : count - each + t % each)];
      if (each == 1 && t > 0 && t >= count) padded[t].weight = padded[t - 1].weight /= 2;
    }
    std::copy_n(padded, room, axis.taps + b * room);
  }
  for (int64_t b = 0; b <= bins; ++b) {
    const bool marked = axis.Marked(b);
    axis.begin[b] = static_cast<int32_t>(b * room);
    if (marked) axis.Mark(b);
  }
  return true;
}

}  // namespace polyop

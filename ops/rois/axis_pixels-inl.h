// SPDX-License-Identifier: Apache-2.0
// The pixels of an axis that the samples of a bin use. Has neither a guard nor a namespace: a file includes it inside
// of its namespace, so that a CPU kernel compiles it once per instruction set. Requires: roi_axis.h is included before.

/// Calls add(pixel, weight) for each pixel of an axis that the samples of its first bin use. Weights of samples at
/// ascending positions are accumulated, so that each pixel is visited once.
template <class Add>
POLYOP_HD void ForEachPixel(const RoiAxis& axis, int64_t extent, const Add& add) {
  int32_t at = 0;
  float low = 0, high = 0;  // weights of pixels `at` and `at` + 1
  const auto finish = [&](float weight, int32_t pixel) {
    if (weight != 0) add(pixel, weight);
  };
  int64_t begin = 0, end = 0;
  axis.Inside(0, extent, &begin, &end);
  for (int64_t s = begin; s < end; ++s) {
    const LinearTaps taps = RoiTaps(axis.Position(0, s), extent);
    if (!taps.inside) continue;
    if (taps.low != at) {
      finish(low, at);
      low = 0;
      if (taps.low == at + 1) {
        low = high;
      } else {
        finish(high, at + 1);
      }
      high = 0;
      at = taps.low;
    }
    low += taps.low_weight;
    high += taps.high_weight;
  }
  finish(low, at);
  finish(high, at + 1);
}

// SPDX-License-Identifier: Apache-2.0
// The pixels of a sample on the side of a box.
#pragma once

#include "ops/rois/border_align/border_align_samples.h"

namespace polyop {

/// Pixels and weights of a sample. If there are fewer than four pixels, the last one repeats and its weight is
/// halved each time.
struct SampleTaps {
  static constexpr int kTaps = 4;

  int32_t pixel[kTaps];
  float weight[kTaps];
  bool inside;  // false: the sample is 0

  static SampleTaps Of(const RoiSample& sample, int64_t width) {
    SampleTaps taps{};
    taps.inside = sample.y.inside && sample.x.inside;
    if (!taps.inside) return taps;
    const int32_t low = sample.y.low * static_cast<int32_t>(width), high = sample.y.high * static_cast<int32_t>(width);
    int count = taps.AddRow(0, low, sample.x, sample.y.low_weight);
    if (high != low) count = taps.AddRow(count, high, sample.x, sample.y.high_weight);
    for (; count < kTaps; ++count) {
      taps.weight[count - 1] /= 2;
      taps.Add(count, taps.pixel[count - 1], taps.weight[count - 1]);
    }
    return taps;
  }

 private:
  // Keeps an existing pixel whose weight is 0, so that its NaN makes the sample NaN, as on the GPU.
  int AddRow(int count, int32_t row, const LinearTaps& x, float w) {
    Add(count++, row + x.low, w * x.low_weight);
    if (x.high != x.low) Add(count++, row + x.high, w * x.high_weight);
    return count;
  }
  void Add(int at, int32_t index, float w) {
    pixel[at] = index;
    weight[at] = w;
  }
};

}  // namespace polyop

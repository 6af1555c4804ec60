// SPDX-License-Identifier: Apache-2.0
// One axis of RoIAlign's sampling grid (He et al., Mask R-CNN, 2017): positions and weights of samples. The rows and
// columns of an axis-aligned box's grid are independent, so each axis is computed separately.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// The index of a pixel, row or column, and its weight.
struct Tap {
  int32_t index;
  float weight;
};

/// The two pixels of a linearly interpolated position, or none.
struct LinearTaps {
  bool inside = false;  // else the sample is 0
  int32_t low = 0, high = 0;
  float low_weight = 0, high_weight = 0;
};

/// Applies RoIAlign's rule: a sample below -1 or above `extent` is 0; between these and the border it has the border's
/// value. NaN is outside.
POLYOP_HD inline LinearTaps RoiTaps(double position, int64_t extent) {
  LinearTaps taps;
  if (!(position >= -1.0 && position <= static_cast<double>(extent)) || extent == 0) return taps;
  taps.inside = true;
  const double clamped = std::max(position, 0.0);
  const int64_t low = static_cast<int64_t>(clamped);
  if (low >= extent - 1) {
    taps.low = taps.high = static_cast<int32_t>(extent - 1);
    taps.low_weight = 1;
    return taps;
  }
  taps.low = static_cast<int32_t>(low);
  taps.high = taps.low + 1;
  taps.high_weight = static_cast<float>(clamped - static_cast<double>(low));
  taps.low_weight = static_cast<float>(1.0 - (clamped - static_cast<double>(low)));
  return taps;
}

/// A box's extent along one axis, divided into bins with `samples` samples each.
struct RoiAxis {
  double start = 0, bin = 0;
  int64_t samples = 0;  // per bin; 0: the bins are empty

  /// Creates an axis from the box's ends in pixels of the image. `ratio` <= 0: as many samples as a bin has pixels.
  POLYOP_HD static RoiAxis Make(double low, double high, double scale, bool aligned, int64_t bins, int64_t ratio) {
    const double shift = aligned ? 0.5 : 0.0;
    return Between(low * scale - shift, high * scale - shift, aligned ? 0.0 : 1.0, bins, ratio);
  }

  /// Creates an axis from the box's ends on the axis itself. The box is extended to `min_length`.
  POLYOP_HD static RoiAxis Between(double low, double high, double min_length, int64_t bins, int64_t ratio) {
    RoiAxis axis;
    axis.start = low;
    double length = high - low;
    if (min_length > 0 && std::isfinite(length)) length = std::max(length, min_length);
    axis.bin = length / static_cast<double>(bins);
    const double adaptive = std::ceil(axis.bin);
    if (!std::isfinite(axis.start) || !std::isfinite(length)) return axis;
    axis.samples = ratio > 0 ? ratio : adaptive > 0 && adaptive < 9e15 ? static_cast<int64_t>(adaptive) : 0;
    return axis;
  }

  POLYOP_HD double Position(int64_t bin_index, int64_t sample) const {
    return start +
           bin * (static_cast<double>(bin_index) + (static_cast<double>(sample) + 0.5) / static_cast<double>(samples));
  }

  /// Computes the range [*begin, *end) of a bin's samples that can be inside [-1, extent], which is short even if the
  /// box is huge.
  POLYOP_HD void Inside(int64_t bin_index, int64_t extent, int64_t* begin, int64_t* end) const {
    Inside(bin_index, -1.0, static_cast<double>(extent), begin, end);
  }
  /// Computes the range of a bin's samples that can be inside [low, high].
  POLYOP_HD void Inside(int64_t bin_index, double low, double high, int64_t* begin, int64_t* end) const {
    *begin = 0;
    *end = samples;
    if (!(bin > 0) || samples == 0) return;  // boxes that are not finite have no samples
    const double step = bin / static_cast<double>(samples), first = start + bin * static_cast<double>(bin_index);
    const auto clamp = [&](double at) {
      return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(samples)));
    };
    *begin = clamp(std::floor((low - first) / step - 1.5));
    *end = clamp(std::ceil((high - first) / step + 1.5));
    *end = std::max(*end, *begin);
  }
};

}  // namespace polyop

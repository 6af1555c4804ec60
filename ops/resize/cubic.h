// SPDX-License-Identifier: Apache-2.0
// Cubic convolution: the four weights of a sample, and the tables of a resized axis.
// R. Keys, "Cubic Convolution Interpolation for Digital Image Processing", 1981, with a = -0.75 as in PyTorch.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

inline constexpr double kCubicA = -0.75;

/// Computes the weights of pixels floor(x) - 1, …, floor(x) + 2 for t = x - floor(x) in [0, 1]. They sum to 1.
template <class T>
POLYOP_HD inline void CubicWeights(T t, T weights[4], T a = static_cast<T>(kCubicA)) {
  const auto near = [a](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };       // 0 <= d <= 1
  const auto far = [a](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };  // 1 <= d <= 2
  weights[0] = far(t + 1);
  weights[1] = near(t);
  weights[2] = near(1 - t);
  weights[3] = far(2 - t);
}

/// Sampling positions and weights that resize an axis from `inputs` to `outputs` pixels.
struct ResizeAxis {
  int64_t inputs = 0, outputs = 0;
  double step = 1;          // input pixels per output pixel
  bool from_first = false;  // the first pixels of both coincide; else pixel centres are at k + 0.5
  double a = kCubicA;
  bool exclude_outside = false;  // drops pixels outside and normalises the weights; else the border repeats

  /// Returns the input coordinate of output pixel `i`.
  POLYOP_HD double Source(int64_t i) const {
    const double at = static_cast<double>(i);
    return from_first ? step * at : step * (at + 0.5) - 0.5;
  }
  /// Computes the four input pixels of output pixel `i` and their weights in T.
  template <class T>
  POLYOP_HD void Taps(int64_t i, int64_t index[4], T weight[4]) const {
    const double at = Source(i), base = std::floor(at), last = static_cast<double>(inputs - 1);
    if (exclude_outside) {
      InsideWeights(at - base, base, weight);
    } else {
      CubicWeights(static_cast<T>(at - base), weight, static_cast<T>(a));
    }
    for (int k = 0; k < 4; ++k) {
      const double pixel = base + (k - 1);
      index[k] = static_cast<int64_t>(pixel > 0 ? (pixel < last ? pixel : last) : 0);
    }
  }
  static ResizeAxis ByScale(int64_t inputs, int64_t outputs, double scale) {
    return {inputs, outputs, 1.0 / scale, false};
  }
  static ResizeAxis ByExtents(int64_t inputs, int64_t outputs) {
    return {inputs, outputs, static_cast<double>(inputs) / static_cast<double>(outputs), false};
  }
  static ResizeAxis AlignedCorners(int64_t inputs, int64_t outputs) {
    return {inputs, outputs, outputs > 1 ? static_cast<double>(inputs - 1) / static_cast<double>(outputs - 1) : 0,
            true};
  }

 private:
  // In double, because near the last pixel both the weights and their sum may be close to 0.
  template <class T>
  POLYOP_HD void InsideWeights(double t, double base, T weight[4]) const {
    double weights[4], sum = 0;
    CubicWeights(t, weights, a);
    for (int k = 0; k < 4; ++k) {
      const double pixel = base + (k - 1);
      if (pixel < 0 || pixel >= static_cast<double>(inputs)) weights[k] = 0;
      sum += weights[k];
    }
    for (int k = 0; k < 4; ++k) weight[k] = static_cast<T>(weights[k] / sum);
  }
};

}  // namespace polyop

// Cubic convolution: the four weights of a sample, and the tables of a resized axis.
// R. Keys, "Cubic Convolution Interpolation for Digital Image Processing", 1981, with a = -0.75 as torch.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

inline constexpr double kCubicA = -0.75;

/// The weights of the pixels at floor(x) - 1, …, floor(x) + 2 for t = x - floor(x) in [0, 1]. They sum to 1.
template <class T>
POLYOP_HD inline void CubicWeights(T t, T weights[4]) {
  const T a = static_cast<T>(kCubicA);
  const auto near = [a](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };       // 0 <= d <= 1
  const auto far = [a](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };  // 1 <= d <= 2
  weights[0] = far(t + 1);
  weights[1] = near(t);
  weights[2] = near(1 - t);
  weights[3] = far(2 - t);
}

/// Where an axis of `inputs` pixels is sampled to make `outputs` pixels.
struct ResizeAxis {
  int64_t inputs = 0, outputs = 0;
  double step = 1;             // input pixels per output pixel
  bool align_corners = false;  // else pixel centres are at k + 0.5

  /// The input coordinate of output pixel `i`.
  POLYOP_HD double Source(int64_t i) const {
    const double at = static_cast<double>(i);
    return align_corners ? step * at : step * (at + 0.5) - 0.5;
  }
  static ResizeAxis ByScale(int64_t inputs, int64_t outputs, double scale) {
    return {inputs, outputs, 1.0 / scale, false};
  }
  static ResizeAxis AlignedCorners(int64_t inputs, int64_t outputs) {
    return {inputs, outputs, outputs > 1 ? static_cast<double>(inputs - 1) / static_cast<double>(outputs - 1) : 0,
            true};
  }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// Gradients of bilinear samples with zero padding, for kernels on the GPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/sampling/zero_padded_sample.h"

namespace polyop {

/// The four pixels of a sample, -1 outside, and its position between them.
struct BilinearTaps {
  int32_t pixel[4] = {-1, -1, -1, -1};
  float dy, dx, factor;  // the sample is multiplied by the factor

  /// Requires: the plane has fewer than 2^31 pixels.
  POLYOP_HD static BilinearTaps At(float y, float x, int64_t height, int64_t width, float factor) {
    return Of(ZeroPaddedSample::At(y, x, height, width, factor), y, x, factor);
  }
  /// Returns the taps of the sample at (y, x).
  POLYOP_HD static BilinearTaps Of(const ZeroPaddedSample& sample, float y, float x, float factor) {
    BilinearTaps taps;
    for (int k = 0; k < 4; ++k) taps.pixel[k] = sample.pixel[k];
    taps.dy = y - std::floor(y);
    taps.dx = x - std::floor(x);
    taps.factor = factor;
    return taps;
  }
  POLYOP_HD float Down(int k) const { return k / 2 ? dy : 1 - dy; }
  POLYOP_HD float Across(int k) const { return k % 2 ? dx : 1 - dx; }
  /// The derivative of the sample with respect to pixel k.
  POLYOP_HD float Weight(int k) const { return Down(k) * Across(k) * factor; }
};

/// The gradient of a sample with respect to its position, in pixels, and its factor.
struct BilinearSlopes {
  float x = 0, y = 0, factor = 0;

  POLYOP_HD static BilinearSlopes Sum(const BilinearSlopes& a, const BilinearSlopes& b) {
    BilinearSlopes sum;
    sum.x = a.x + b.x;
    sum.y = a.y + b.y;
    sum.factor = a.factor + b.factor;
    return sum;
  }
  /// `dots` are the sums over channels of the sample's gradient times the four pixels. Those outside are ignored, as
  /// are products with a weight of 0.
  POLYOP_HD static BilinearSlopes Of(const BilinearTaps& taps, const float* dots) {
    BilinearSlopes grad;
    for (int k = 0; k < 4; ++k) {
      if (taps.pixel[k] < 0) continue;
      grad.factor += Product(taps.Down(k) * taps.Across(k), dots[k]);
      grad.x += Product(taps.factor * taps.Down(k), k % 2 ? dots[k] : -dots[k]);
      grad.y += Product(taps.factor * taps.Across(k), k / 2 ? dots[k] : -dots[k]);
    }
    return grad;
  }

 private:
  POLYOP_HD static float Product(float weight, float value) { return weight == 0 ? 0 : weight * value; }
};

}  // namespace polyop

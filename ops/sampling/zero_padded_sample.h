// SPDX-License-Identifier: Apache-2.0
// Bilinear samples of a plane with zero padding.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// Calls visit(k, pixel, weight) for those of the four pixels k around a point that are inside the plane; the weights
/// are multiplied by `factor`. There are none if the point is NaN or outside by a pixel or more. Inlined, so that it is
/// compiled for the caller's instruction set.
template <class Visit>
POLYOP_HD inline __attribute__((always_inline)) void ForEachZeroPaddedTap(float y, float x, int64_t height,
                                                                          int64_t width, float factor,
                                                                          const Visit& visit) {
  if (!(y > -1 && x > -1 && y < static_cast<float>(height) && x < static_cast<float>(width))) return;
  const float top = std::floor(y), left = std::floor(x), dy = y - top, dx = x - left;
  const int64_t row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
  for (int k = 0; k < 4; ++k) {
    const int64_t r = row + k / 2, c = column + k % 2;
    if (r < 0 || r >= height || c < 0 || c >= width) continue;
    visit(k, r * width + c, (k / 2 ? dy : 1 - dy) * (k % 2 ? dx : 1 - dx) * factor);
  }
}

/// The four pixels and their weights, for kernels on the GPU.
struct ZeroPaddedSample {
  int32_t pixel[4] = {-1, -1, -1, -1};
  float weight[4];

  /// Pixels outside are -1, and their weights are unspecified. Requires: the plane has fewer than 2^31 pixels.
  POLYOP_HD static ZeroPaddedSample At(float y, float x, int64_t height, int64_t width, float factor) {
    ZeroPaddedSample sample;
    ForEachZeroPaddedTap(y, x, height, width, factor, [&](int k, int64_t at, float part) {
      sample.pixel[k] = static_cast<int32_t>(at);
      sample.weight[k] = part;
    });
    return sample;
  }
};

}  // namespace polyop

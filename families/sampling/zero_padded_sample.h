// A bilinear sample of a plane that is surrounded by zeros: for kernels on the GPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// The four pixels around a point and their weights. Pixels outside are -1, and their weights have no meaning.
struct ZeroPaddedSample {
  int32_t pixel[4] = {-1, -1, -1, -1};
  float weight[4];

  /// The weights are multiplied by `factor`. A point outside by a pixel or more, or NaN, has no pixels; the plane has
  /// fewer than 2^31.
  POLYOP_HD static ZeroPaddedSample At(float y, float x, int64_t height, int64_t width, float factor) {
    ZeroPaddedSample sample;
    if (!(y > -1 && x > -1 && y < static_cast<float>(height) && x < static_cast<float>(width))) return sample;
    const float top = std::floor(y), left = std::floor(x), dy = y - top, dx = x - left;
    for (int k = 0; k < 4; ++k) {
      const int64_t r = static_cast<int64_t>(top) + k / 2, c = static_cast<int64_t>(left) + k % 2;
      if (r < 0 || r >= height || c < 0 || c >= width) continue;
      sample.pixel[k] = static_cast<int32_t>(r * width + c);
      sample.weight[k] = (k / 2 ? dy : 1 - dy) * (k % 2 ? dx : 1 - dx) * factor;
    }
    return sample;
  }
};

}  // namespace polyop

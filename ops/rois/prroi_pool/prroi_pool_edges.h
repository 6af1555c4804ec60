// SPDX-License-Identifier: Apache-2.0
// The derivatives of bins with respect to the ends of a RoI.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// The pixels of a position on an axis, of which there are up to two.
struct EdgePixels {
  int64_t first = 0, count = 0;
  float weights[2] = {0, 0};

  POLYOP_HD static EdgePixels At(double position, int64_t extent) {
    EdgePixels edge;
    if (!(position > -1 && position < static_cast<double>(extent))) return edge;
    const auto low = static_cast<int64_t>(std::floor(position));
    edge.first = std::max<int64_t>(low, 0);
    for (int64_t pixel = edge.first; pixel < std::min(low + 2, extent); ++pixel) {
      edge.weights[edge.count++] = static_cast<float>(1 - std::fabs(position - static_cast<double>(pixel)));
    }
    return edge;
  }
};

/// The derivatives of the average over a bin with respect to both ends of the RoI on an axis.
struct PreciseEnds {
  double low, high;

  /// Bin i of n has the size `size`. Its average over the bin is `average`, over its first edge `first` and over its
  /// last edge `last`. The edges are i / n and (i + 1) / n of the way between the ends.
  POLYOP_HD static PreciseEnds Of(double i, double n, double size, double average, double first, double last) {
    return {(last * (1 - (i + 1) / n) - first * (1 - i / n) + average / n) / size,
            (last * (i + 1) / n - first * i / n - average / n) / size};
  }
};

}  // namespace polyop

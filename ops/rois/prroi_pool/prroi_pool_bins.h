// SPDX-License-Identifier: Apache-2.0
// The weights of pixels in the average over a bin, one axis at a time. The surface is a sum of one hat function per
// pixel, and a hat function is the product of one along each axis.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"
#include "ops/rois/prroi_pool/prroi_pool.h"

namespace polyop {

/// A bin [low, low + size) along an axis. Pixels [first, last) contribute to it.
struct PreciseBin {
  double low, size;
  int64_t first, last;

  /// Returns the average of the pixel's hat function over the bin. The integral of a linear piece is computed as its
  /// length times its value in the middle, which does not cancel, so bins may be tiny.
  POLYOP_HD double WeightOf(int64_t pixel) const {
    const double from = low - static_cast<double>(pixel), to = from + size;
    const double a = std::max(from, -1.0), b = std::min(to, 0.0), c = std::max(from, 0.0), d = std::min(to, 1.0);
    const double rising = b > a ? (b - a) * (1 + (a + b) / 2) : 0, falling = d > c ? (d - c) * (1 - (c + d) / 2) : 0;
    return (rising + falling) / size;
  }
};

/// A RoI along an axis. If `size` is 0, its bins are empty.
struct PreciseAxis {
  double start, size;  // of the first bin

  POLYOP_HD static PreciseAxis Make(double low, double high, double scale, int64_t bins) {
    const double start = low * scale, size = (high * scale - start) / static_cast<double>(bins);
    return {start, std::isfinite(start) && std::isfinite(size) && size > 0 ? size : 0};
  }
  POLYOP_HD PreciseBin Bin(int64_t i, int64_t extent) const {
    const double low = start + size * static_cast<double>(i), end = static_cast<double>(extent);
    if (!(size > 0)) return {0, 0, 0, 0};
    return {low, size, static_cast<int64_t>(std::clamp(std::floor(low), 0.0, end)),
            static_cast<int64_t>(std::clamp(std::ceil(low + size) + 1, 0.0, end))};
  }
};

/// Both axes of a row (batch index, x1, y1, x2, y2).
struct PreciseRoi {
  PreciseAxis y, x;

  template <class T>
  POLYOP_HD static PreciseRoi Of(const PrRoiPool& op, const T* row) {
    return {PreciseAxis::Make(ToFloat(row[2]), ToFloat(row[4]), op.spatial_scale, op.pooled_height),
            PreciseAxis::Make(ToFloat(row[1]), ToFloat(row[3]), op.spatial_scale, op.pooled_width)};
  }
};

}  // namespace polyop

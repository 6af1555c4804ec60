// SPDX-License-Identifier: Apache-2.0
// The pixels of the bins of a box, one axis at a time.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"
#include "ops/rois/roi_pool/roi_pool.h"

namespace polyop {

/// Pixels [begin, end) of an axis.
struct PixelRange {
  int64_t begin, end;
};

/// A box along an axis. If `bin` is 0, its bins are empty.
struct RoiPoolAxis {
  double start, bin;
  bool rounded;

  POLYOP_HD static RoiPoolAxis Make(const RoiPool& op, float low, float high, int64_t bins) {
    RoiPoolAxis axis{0, 0, op.rounded};
    if (op.rounded) {
      axis.start = static_cast<double>(std::round(low * op.spatial_scale));
      const double extent = static_cast<double>(std::round(high * op.spatial_scale)) - axis.start + 1;
      axis.bin = static_cast<double>(static_cast<float>(extent < 1 ? 1 : extent) / static_cast<float>(bins));
    } else {
      const double scale = op.spatial_scale;
      axis.start = low * scale;
      axis.bin = ((high + 1.0) * scale - axis.start) / static_cast<double>(bins);
    }
    const bool finite = std::fabs(low) < INFINITY && std::fabs(high) < INFINITY && std::fabs(axis.start) < INFINITY;
    if (!finite || !(axis.bin > 0 && axis.bin < INFINITY)) axis.bin = 0;
    return axis;
  }

  POLYOP_HD PixelRange Bin(int64_t i, int64_t extent) const {
    if (!(bin > 0)) return {0, 0};
    const double end = static_cast<double>(extent);
    const double low = std::floor(rounded ? Product(i) : start + bin * static_cast<double>(i));
    const double high = std::ceil(rounded ? Product(i + 1) : start + bin * static_cast<double>(i + 1));
    const double from = rounded ? start : 0;
    return {static_cast<int64_t>(std::clamp(low + from, 0.0, end)),
            static_cast<int64_t>(std::clamp(high + from, 0.0, end))};
  }

 private:
  POLYOP_HD double Product(int64_t i) const {
    return static_cast<double>(static_cast<float>(i) * static_cast<float>(bin));
  }
};

/// Both axes of a row (batch index, x1, y1, x2, y2).
struct RoiPoolBox {
  RoiPoolAxis y, x;

  template <class T>
  POLYOP_HD static RoiPoolBox Of(const RoiPool& op, const T* row) {
    RoiPoolBox box{RoiPoolAxis::Make(op, ToFloat(row[2]), ToFloat(row[4]), op.output_height),
                   RoiPoolAxis::Make(op, ToFloat(row[1]), ToFloat(row[3]), op.output_width)};
    if (!(box.x.bin > 0)) box.y.bin = 0;
    return box;
  }
};

}  // namespace polyop

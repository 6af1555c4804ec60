// SPDX-License-Identifier: Apache-2.0
// The positions of the samples along the sides of a box.
#pragma once

#include <cmath>

#include "ops/rois/roi_sample.h"

namespace polyop {

/// Number of sides. Channels and outputs order them as top, left, bottom, right.
inline constexpr int kBorderSides = 4;

/// Returns sample s in [0, pool_size] of a side. The sample is outside if the box is not finite.
template <class T>
POLYOP_HD RoiSample BorderSample(const T* box, int side, int64_t s, int64_t pool_size, int64_t height, int64_t width) {
  const double x1 = ToFloat(box[0]), y1 = ToFloat(box[1]), x2 = ToFloat(box[2]), y2 = ToFloat(box[3]);
  if (!std::isfinite(x1 + y1 + x2 + y2)) return {};
  const bool back = side >= 2, across = side % 2 == 0;
  const double part = static_cast<double>(s) / static_cast<double>(pool_size) * (back ? -1 : 1);
  return {RoiTaps((back ? y2 : y1) + (across ? 0 : (y2 - y1) * part), height),
          RoiTaps((back ? x2 : x1) + (across ? (x2 - x1) * part : 0), width)};
}

}  // namespace polyop

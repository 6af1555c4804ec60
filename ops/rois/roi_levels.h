// SPDX-License-Identifier: Apache-2.0
// The level of a feature pyramid from which a RoI is pooled.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// Returns floor(log2(sqrt(width * height) / finest + 1e-6)), clamped to [0, levels), as in MMDetection (Lin et al.,
/// Feature Pyramid Networks, 2017). Returns 0 for a box whose area is negative or NaN.
POLYOP_HD inline int32_t RoiLevelOf(double width, double height, double finest_scale, int32_t levels) {
  const double level = std::floor(std::log2(std::sqrt(width * height) / finest_scale + 1e-6));
  return level > 0 ? static_cast<int32_t>(std::min<double>(level, levels - 1)) : 0;  // NaN is not > 0
}

}  // namespace polyop

// Which level of a feature pyramid a region is pooled from.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// Lin et al., Feature Pyramid Networks, 2017, as MMDetection has it: floor(log2(sqrt(width * height) / finest +
/// 1e-6)), within [0, levels). A box without a real area belongs to level 0.
POLYOP_HD inline int32_t RoiLevelOf(double width, double height, double finest_scale, int32_t levels) {
  const double level = std::floor(std::log2(std::sqrt(width * height) / finest_scale + 1e-6));
  return level > 0 ? static_cast<int32_t>(std::min<double>(level, levels - 1)) : 0;  // NaN is not > 0
}

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// Overlap of two 3-D boxes whose z is that of their centre.
#pragma once

#include <algorithm>

#include "ops/boxes3d/box3d.h"

namespace polyop {

/// The minimum union that the BEV IoU divides by.
inline constexpr double kMinBevUnion = 1e-8;

/// Returns the area of the intersection in bird's eye view.
POLYOP_HD inline double OverlapBev(const RotatedBox& a, const RotatedBox& b) {
  return a.area > 0 && b.area > 0 ? SharedArea(a, b) : 0;
}

/// Returns the IoU of the areas in bird's eye view.
POLYOP_HD inline double IouBev(const RotatedBox& a, const RotatedBox& b) {
  const double shared = OverlapBev(a, b);
  return shared / std::max(a.area + b.area - shared, double{kMinBevUnion});
}

/// Returns the IoU of the volumes; the union counts as at least 1e-6.
POLYOP_HD inline double Iou3d(const Box3d& a, const Box3d& b) {
  if (!(a.volume > 0) || !(b.volume > 0)) return 0;
  const double away = b.z - a.z;
  const double height = std::min(a.half_z, away + b.half_z) - std::max(-a.half_z, away - b.half_z);
  const double shared = height > 0 ? OverlapBev(a.bev, b.bev) * height : 0;
  return shared / std::max(a.volume + b.volume - shared, 1e-6);
}

}  // namespace polyop

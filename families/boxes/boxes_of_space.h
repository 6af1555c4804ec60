// Boxes of space turned around z, (x, y, z, dx, dy, dz, heading), z that of their middle, and what two of them share.
// Those of point clouds, whose z is that of the bottom, are families/points/box3d.h.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "families/boxes/rotated_boxes.h"

namespace polyop {

/// The least union that the IoU of boxes seen from above divides by.
inline constexpr double kLeastUnitedArea = 1e-8;

/// A box seen from above. Its area is 0, which overlaps nothing, if a number of it is NaN or infinite or an extent is
/// not positive; z and dz are not looked at, nor is the heading if it is not `turned`.
template <class T>
POLYOP_HD RotatedBox SeenFromAbove(const T* box, bool turned = true) {
  const float row[5] = {ToFloat(box[0]), ToFloat(box[1]), ToFloat(box[3]), ToFloat(box[4]),
                        turned ? ToFloat(box[6]) : 0.0f};
  RotatedBox seen = RotatedBox::Of(row);
  bool is_box = row[2] > 0 && row[3] > 0;
  for (const float number : row) is_box = is_box && std::fabs(number) < INFINITY;
  if (!is_box) seen.area = 0;
  return seen;
}

struct BoxOfSpace {
  RotatedBox above;
  double z = 0, half_height = 0;
  double volume = 0;  // 0 if it overlaps nothing

  template <class T>
  POLYOP_HD static BoxOfSpace Of(const T* box) {
    const float z = ToFloat(box[2]), dz = ToFloat(box[5]);
    const bool has_height = std::fabs(z) < INFINITY && dz > 0 && dz < INFINITY;
    const RotatedBox above = SeenFromAbove(box);
    return {above, z, static_cast<double>(dz) / 2, has_height ? above.area * dz : 0};
  }
};

/// The area that two boxes share seen from above.
POLYOP_HD inline double SharedFromAbove(const RotatedBox& a, const RotatedBox& b) {
  return a.area > 0 && b.area > 0 ? SharedArea(a, b) : 0;
}

/// The same by the area of both together.
POLYOP_HD inline double IouFromAbove(const RotatedBox& a, const RotatedBox& b) {
  const double shared = SharedFromAbove(a, b);
  return shared / std::max(a.area + b.area - shared, double{kLeastUnitedArea});
}

/// The volume that two boxes share by that of both together, at least 1e-6.
POLYOP_HD inline double IouOfSpace(const BoxOfSpace& a, const BoxOfSpace& b) {
  if (!(a.volume > 0) || !(b.volume > 0)) return 0;
  const double away = b.z - a.z;
  const double height = std::min(a.half_height, away + b.half_height) - std::max(-a.half_height, away - b.half_height);
  const double shared = height > 0 ? SharedFromAbove(a.above, b.above) * height : 0;
  return shared / std::max(a.volume + b.volume - shared, 1e-6);
}

}  // namespace polyop

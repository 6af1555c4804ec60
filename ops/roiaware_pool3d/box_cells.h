// Which cell of a box's grid a point is in, on CPU and GPU.
#pragma once

#include <array>

#include "families/points/box3d.h"

namespace polyop {

struct BoxCells {
  Box3d box;
  int64_t x, y, z;  // cells along each axis

  template <class T>
  static POLYOP_HD BoxCells Of(const T* roi, int64_t x, int64_t y, int64_t z) {
    return {Box3d::Of(roi), x, y, z};
  }

  /// The number of the cell of a point that the box holds.
  template <class T>
  POLYOP_HD int64_t Of(const T* point) const {
    const double px = static_cast<double>(ToFloat(point[0])), py = static_cast<double>(ToFloat(point[1]));
    const int64_t i = Place(box.Along(px, py), box.half_x, x), k = Place(box.Across(px, py), box.half_y, y);
    return (i * y + k) * z + Place(static_cast<double>(ToFloat(point[2])) - box.z, box.half_z, z);
  }

 private:
  // Of a place in [-half, half]; 0 in a box without an extent, where the quotient is NaN.
  static POLYOP_HD int64_t Place(double at, double half, int64_t cells) {
    const double cell = (at + half) / (2 * half / static_cast<double>(cells));
    if (!(cell > 0)) return 0;
    return cell < static_cast<double>(cells) ? static_cast<int64_t>(cell) : cells - 1;
  }
};

}  // namespace polyop

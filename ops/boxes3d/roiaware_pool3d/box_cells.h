// SPDX-License-Identifier: Apache-2.0
// The cell of a box's grid that contains a point, for CPU and GPU.
#pragma once

#include <array>

#include "ops/boxes3d/box3d.h"

namespace polyop {

struct BoxCells {
  Box3d box;
  int64_t x, y, z;  // number of cells along each axis

  template <class T>
  static POLYOP_HD BoxCells Of(const T* roi, int64_t x, int64_t y, int64_t z) {
    return {Box3d::OfBottom(roi), x, y, z};
  }

  /// Returns the index of the cell of a point inside the box.
  template <class T>
  POLYOP_HD int64_t Of(const T* point) const {
    const double px = static_cast<double>(ToFloat(point[0])), py = static_cast<double>(ToFloat(point[1]));
    const int64_t i = CellAlong(box.Along(px, py), box.bev.half_width, x),
                  k = CellAlong(box.Across(px, py), box.bev.half_height, y);
    return (i * y + k) * z + CellAlong(static_cast<double>(ToFloat(point[2])) - box.z, box.half_z, z);
  }

 private:
  // Returns the cell of a position in [-half, half]; 0 if the extent is 0, where the quotient is NaN.
  static POLYOP_HD int64_t CellAlong(double position, double half, int64_t cells) {
    const double cell = (position + half) / (2 * half / static_cast<double>(cells));
    if (!(cell > 0)) return 0;
    return cell < static_cast<double>(cells) ? static_cast<int64_t>(cell) : cells - 1;
  }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// Point-in-box test in double, written as in MMCV.
#pragma once

#include <cmath>

namespace polyop {

/// Transforms a point to the box's axes: x and y relative to the centre, z to the bottom.
inline void ToBoxFrame(const double* point, const double* box, double* local) {
  const double cosine = std::cos(-box[6]), sine = std::sin(-box[6]);
  const double x = point[0] - box[0], y = point[1] - box[1];
  local[0] = x * cosine - y * sine;
  local[1] = x * sine + y * cosine;
  local[2] = point[2] - box[2];
}

inline bool IsInBox(const double* point, const double* box) {
  double local[3];
  ToBoxFrame(point, box, local);
  const double middle = box[2] + box[5] / 2;
  if (!(std::abs(point[2] - middle) <= box[5] / 2)) return false;
  return local[0] > -box[3] / 2 && local[0] < box[3] / 2 && local[1] > -box[4] / 2 && local[1] < box[4] / 2;
}

}  // namespace polyop

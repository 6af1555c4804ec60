// Whether a point is in a turned box, as MMCV writes it, in double.
#pragma once

#include <cmath>

namespace polyop {

/// The point along the box's axes: x and y from its middle, z from its bottom.
inline void PlaceInBox(const double* point, const double* box, double* place) {
  const double cosine = std::cos(-box[6]), sine = std::sin(-box[6]);
  const double x = point[0] - box[0], y = point[1] - box[1];
  place[0] = x * cosine - y * sine;
  place[1] = x * sine + y * cosine;
  place[2] = point[2] - box[2];
}

inline bool IsInBox(const double* point, const double* box) {
  double place[3];
  PlaceInBox(point, box, place);
  const double middle = box[2] + box[5] / 2;
  if (!(std::abs(point[2] - middle) <= box[5] / 2)) return false;
  return place[0] > -box[3] / 2 && place[0] < box[3] / 2 && place[1] > -box[4] / 2 && place[1] < box[4] / 2;
}

}  // namespace polyop

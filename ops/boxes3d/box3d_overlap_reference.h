// SPDX-License-Identifier: Apache-2.0
// Overlap of two 3-D boxes, computed in another way than the kernels do: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/boxes/rotated_boxes_reference.h"

namespace polyop::reference {

/// Areas in bird's eye view of two boxes (x, y, z, dx, dy, dz, heading).
struct BevPair {
  double area_a = 0, area_b = 0, shared = 0;  // all 0 if one of the boxes overlaps nothing

  BevPair(const double* a, const double* b, bool rotated) {
    const double from[2][5] = {{a[0], a[1], a[3], a[4], rotated ? a[6] : 0},
                               {b[0], b[1], b[3], b[4], rotated ? b[6] : 0}};
    for (const auto& row : from) {
      if (!(row[2] > 0) || !(row[3] > 0)) return;
      for (double number : row) {
        if (!std::isfinite(number)) return;
      }
    }
    area_a = a[3] * a[4];
    area_b = b[3] * b[4];
    shared = std::min({RotatedIntersection(from[0], from[1]), area_a, area_b});
  }
  double Iou() const { return shared / std::max(area_a + area_b - shared, 1e-8); }
};

/// Returns the IoU of the volumes.
inline double Iou3d(const double* a, const double* b) {
  for (const double* box : {a, b}) {
    if (!std::isfinite(box[2]) || !std::isfinite(box[5]) || box[5] <= 0) return 0;
  }
  const BevPair bev(a, b, true);
  const double away = a[2] - b[2];  // before anything is added: z may be huge
  const double height = std::min({a[5], b[5], (a[5] + b[5]) / 2 - std::abs(away)});
  const double shared = bev.shared * std::max(height, 0.0);
  return shared / std::max(bev.area_a * a[5] + bev.area_b * b[5] - shared, 1e-6);
}

}  // namespace polyop::reference

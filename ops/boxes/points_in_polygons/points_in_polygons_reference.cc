// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/boxes/points_in_polygons/points_in_polygons.h"

namespace polyop {
namespace {

// Computes the winding number of the polygon around the point. Its parity is that of the number of sides that a ray
// crosses.
int32_t IsInside(const double* polygon, int64_t corners, double px, double py) {
  int64_t winding = 0;
  double low[2] = {polygon[0], polygon[1]}, high[2] = {polygon[0], polygon[1]};
  for (int64_t k = 0; k < 2 * corners; ++k) {
    if (!std::isfinite(polygon[k]) || !std::isfinite(px) || !std::isfinite(py)) return 0;
    low[k % 2] = std::min(low[k % 2], polygon[k]);
    high[k % 2] = std::max(high[k % 2], polygon[k]);
  }
  // Checked separately, because with coordinates of 1e20 the error of the products exceeds the width of the polygon.
  if (px <= low[0] || px >= high[0] || py <= low[1] || py >= high[1]) return 0;
  for (int64_t c = 0; c < corners; ++c) {
    const double *a = polygon + 2 * c, *b = polygon + 2 * ((c + 1) % corners);
    const double cross = (b[0] - a[0]) * (py - a[1]) - (b[1] - a[1]) * (px - a[0]);
    const bool within = px >= std::min(a[0], b[0]) && px <= std::max(a[0], b[0]) && py >= std::min(a[1], b[1]) &&
                        py <= std::max(a[1], b[1]);
    if (cross == 0 && within) return 0;
    if (a[1] <= py && b[1] > py && cross > 0) ++winding;
    if (a[1] > py && b[1] <= py && cross < 0) --winding;
  }
  return winding % 2 != 0;
}

Status PointsInPolygonsReference(const PointsInPolygons&, const Context&, Tensor<const double, 2> points,
                                 Tensor<const double, 2> polygons, Tensor<int32_t, 2> inside) {
  const int64_t count = polygons.dim(0), coordinates = polygons.dim(1);
  for (int64_t i = 0; i < inside.size(); ++i) {
    const double* point = points.data() + i / count * 2;
    inside[i] = IsInside(polygons.data() + i % count * coordinates, coordinates / 2, point[0], point[1]);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(PointsInPolygons, PointsInPolygonsReference);

}  // namespace
}  // namespace polyop

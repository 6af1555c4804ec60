// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/boxes/points_in_polygons/points_in_polygons.h"

namespace polyop {
namespace {

template <class T>
POLYOP_HD bool IsInside(const T* polygon, int64_t corners, double px, double py) {
  bool odd = false, on_side = false, finite = true, left = false, right = false, above = false, below = false;
  double ax = ToFloat(polygon[2 * corners - 2]), ay = ToFloat(polygon[2 * corners - 1]);
  for (int64_t c = 0; c < corners; ++c) {
    const double bx = ToFloat(polygon[2 * c]), by = ToFloat(polygon[2 * c + 1]);
    const double side = (bx - ax) * (py - ay) - (by - ay) * (px - ax);
    const bool up = ay <= py && by > py, down = ay > py && by <= py;
    odd ^= (up && side > 0) || (down && side < 0);
    const bool within = (ax < bx ? ax : bx) <= px && px <= (ax > bx ? ax : bx) && (ay < by ? ay : by) <= py &&
                        py <= (ay > by ? ay : by);
    on_side |= within && side == 0;
    left |= bx < px;
    right |= bx > px;
    above |= by < py;
    below |= by > py;
    finite &= std::fabs(bx) < INFINITY && std::fabs(by) < INFINITY;
    ax = bx;
    ay = by;
  }
  const bool between =
      left && right && above && below;  // as on the CPU: with huge coordinates the sides are not decisive
  return odd && !on_side && between && finite && std::fabs(px) < INFINITY && std::fabs(py) < INFINITY;
}

template <class T>
Status PointsInPolygonsCuda(const PointsInPolygons&, const CudaContext& cuda, Tensor<const T, 2> points,
                            Tensor<const T, 2> polygons, Tensor<int32_t, 2> inside) {
  const int64_t coordinates = polygons.dim(1);
  const T *const from = points.data(), *const corners = polygons.data();
  int32_t* const to = inside.data();
  const Divider by_polygons(polygons.dim(0));
  return ForEach(cuda, inside.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t k;
    const T* const point = from + 2 * by_polygons.Split(i, &k);
    to[i] = IsInside(corners + k * coordinates, coordinates / 2, ToFloat(point[0]), ToFloat(point[1]));
  });
}

POLYOP_CUDA_KERNELS(PointsInPolygons, PointsInPolygonsCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop

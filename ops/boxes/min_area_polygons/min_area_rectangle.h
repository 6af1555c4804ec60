// SPDX-License-Identifier: Apache-2.0
// The minimum-area rectangle around nine points, for CPU and GPU.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// The extents of points along and across a direction, scaled by the length of the direction.
struct Projection {
  static constexpr int kPoints = 9;

  double x, y;  // the direction, rotated by right angles so that x > 0, y >= 0
  double low[2], high[2];

  POLYOP_HD static Projection Make(const double* points, int from, int to) {
    Projection projection{points[2 * to] - points[2 * from], points[2 * to + 1] - points[2 * from + 1], {}, {}};
    for (int quarter_turns = 0; quarter_turns < 4 && !(projection.x > 0 && projection.y >= 0); ++quarter_turns) {
      const double x = projection.x;
      projection.x = -projection.y;
      projection.y = x;
    }
    if (!(projection.x > 0)) {  // any direction works for equal points
      projection.x = 1;
      projection.y = 0;
    }
    for (int p = 0; p < kPoints; ++p) {
      const double px = points[2 * p], py = points[2 * p + 1];
      const double at[2] = {projection.x * px + projection.y * py, projection.x * py - projection.y * px};
      for (int k = 0; k < 2; ++k) {
        projection.low[k] = p == 0 ? at[k] : std::min(projection.low[k], at[k]);
        projection.high[k] = p == 0 ? at[k] : std::max(projection.high[k], at[k]);
      }
    }
    return projection;
  }
  POLYOP_HD double Length2() const { return x * x + y * y; }
  POLYOP_HD double Area() const { return (high[0] - low[0]) * (high[1] - low[1]) / Length2(); }
  POLYOP_HD bool HasSmallerAngle(const Projection& other) const { return y * other.x < other.y * x; }
};

/// Computes the corners of the minimum-area rectangle. One of its sides passes through two of the points, so it is
/// enough to try the directions of all pairs.
template <class T>
POLYOP_HD void MinAreaRectangle(const T* set, T* corners) {
  constexpr int kPoints = Projection::kPoints;
  double points[2 * kPoints], origin[2];
  bool finite = true;
  for (int k = 0; k < 2 * kPoints; ++k) {
    points[k] = ToFloat(set[k]);
    finite = finite && std::fabs(points[k]) < INFINITY;
  }
  if (!finite) {
    for (int k = 0; k < 8; ++k) corners[k] = FromFloat<T>(NAN);
    return;
  }
  for (int k = 0; k < 2; ++k) origin[k] = points[k];
  for (int k = 0; k < 2 * kPoints; ++k) points[k] -= origin[k % 2];
  double areas[kPoints * (kPoints - 1) / 2], min_area = INFINITY;
  for (int i = 0, pair = 0; i < kPoints; ++i) {
    for (int j = i + 1; j < kPoints; ++j, ++pair) {
      areas[pair] = Projection::Make(points, i, j).Area();
      min_area = std::min(min_area, areas[pair]);
    }
  }
  Projection best{0, 1, {}, {}};
  for (int i = 0, pair = 0; i < kPoints; ++i) {
    for (int j = i + 1; j < kPoints; ++j, ++pair) {
      if (!(areas[pair] <= min_area * (1 + 1e-9))) continue;
      const Projection projection = Projection::Make(points, i, j);
      if (projection.HasSmallerAngle(best)) best = projection;
    }
  }
  const double along[4] = {best.high[0], best.low[0], best.low[0], best.high[0]};
  const double across[4] = {best.low[1], best.low[1], best.high[1], best.high[1]};
  for (int c = 0; c < 4; ++c) {
    const double x = (best.x * along[c] - best.y * across[c]) / best.Length2();
    const double y = (best.y * along[c] + best.x * across[c]) / best.Length2();
    corners[2 * c] = FromFloat<T>(static_cast<float>(x + origin[0]));
    corners[2 * c + 1] = FromFloat<T>(static_cast<float>(y + origin[1]));
  }
}

}  // namespace polyop

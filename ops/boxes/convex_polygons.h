// SPDX-License-Identifier: Apache-2.0
// Convex polygons with few corners and the area of their intersection.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"
#include "ops/boxes/rotated_boxes.h"

namespace polyop {

/// Writes the indices of the convex hull of `count` points to `corners`, which has room for 2 * count, and returns
/// their number (monotone chain, Andrew, 1979). Requires: points are sorted by x, then by y. Corners are in the
/// direction from the x axis to the y axis. turn(a, b, c) is positive where the path through points a, b and c turns in
/// that direction.
template <class Turn>
POLYOP_HD int HullOfSorted(int count, const Turn& turn, int* corners) {
  int length = 0;
  for (int side = 0; side < 2; ++side) {
    const int first = length;
    for (int i = 0; i < count; ++i) {
      const int point = side == 0 ? i : count - 1 - i;
      while (length >= first + 2 && !(turn(corners[length - 2], corners[length - 1], point) > 0)) --length;
      corners[length++] = point;
    }
    --length;  // the next chain starts with this corner
  }
  return length;
}

/// Corners are in the direction from the x axis to the y axis.
struct ConvexPolygon {
  static constexpr int kMax = 9;
  static constexpr double kMinArea = 1e-14;  // a smaller polygon overlaps nothing

  double x[kMax] = {}, y[kMax] = {};
  int size = 0;
  double area = 0;                   // 0: overlaps nothing
  double low[2] = {}, high[2] = {};  // upright bounds, if the area is positive

  /// Returns the convex hull of a row of kPoints points (x1, y1, …). Its area is 0 if a coordinate is not finite.
  template <int kPoints, class T>
  POLYOP_HD static ConvexPolygon HullOf(const T* row) {
    static_assert(kPoints <= kMax);
    ConvexPolygon points, hull;
    points.size = kPoints;
    bool finite = true;
    for (int i = 0; i < kPoints; ++i) {
      points.x[i] = ToFloat(row[2 * i]);
      points.y[i] = ToFloat(row[2 * i + 1]);
      finite = finite && std::fabs(points.x[i]) < INFINITY && std::fabs(points.y[i]) < INFINITY;
    }
    if (!finite) return hull;
    for (int i = 1; i < kPoints; ++i) {
      for (int k = i; k > 0 && points.IsBefore(k, k - 1); --k) points.Swap(k, k - 1);
    }
    int chain[2 * kMax];
    const int length = HullOfSorted(kPoints, [&](int a, int b, int c) { return points.Turn(a, b, c); }, chain);
    hull.size = std::min(length, kPoints);
    for (int i = 0; i < hull.size; ++i) {
      hull.x[i] = points.x[chain[i]];
      hull.y[i] = points.y[chain[i]];
    }
    hull.SetAreaAndBounds();
    return hull;
  }

  /// Returns the upright bounds, with the area of the polygon.
  POLYOP_HD RotatedBox Bounds() const {
    RotatedBox box;
    box.x = (low[0] + high[0]) / 2;
    box.y = (low[1] + high[1]) / 2;
    box.reach_x = box.half_width = (high[0] - low[0]) / 2;
    box.reach_y = box.half_height = (high[1] - low[1]) / 2;
    box.area = area;
    return box;
  }
  /// Returns whether the upright bounds of both intersect.
  POLYOP_HD bool IsNear(const ConvexPolygon& other) const {
    return low[0] < other.high[0] && other.low[0] < high[0] && low[1] < other.high[1] && other.low[1] < high[1];
  }

 private:
  // Positive where the path through a, b and c turns in the direction from the x axis to the y axis.
  POLYOP_HD double Turn(int a, int b, int c) const {
    return (x[b] - x[a]) * (y[c] - y[b]) - (y[b] - y[a]) * (x[c] - x[b]);
  }
  POLYOP_HD bool IsBefore(int a, int b) const { return x[a] < x[b] || (x[a] == x[b] && y[a] < y[b]); }
  POLYOP_HD void Swap(int a, int b) {
    const double ax = x[a], ay = y[a];
    x[a] = x[b];
    y[a] = y[b];
    x[b] = ax;
    y[b] = ay;
  }
  POLYOP_HD void SetAreaAndBounds() {
    double twice = 0;
    for (int i = 2; i < size; ++i) twice += (x[i - 1] - x[0]) * (y[i] - y[0]) - (y[i - 1] - y[0]) * (x[i] - x[0]);
    if (!(twice / 2 >= kMinArea)) return;
    area = twice / 2;
    low[0] = high[0] = x[0];
    low[1] = high[1] = y[0];
    for (int i = 1; i < size; ++i) {
      low[0] = std::min(low[0], x[i]);
      high[0] = std::max(high[0], x[i]);
      low[1] = std::min(low[1], y[i]);
      high[1] = std::max(high[1], y[i]);
    }
  }
};

/// Returns the area of the intersection: one polygon is clipped by the sides of the other (Sutherland and Hodgman,
/// Reentrant Polygon Clipping, 1974).
POLYOP_HD inline double SharedArea(const ConvexPolygon& a, const ConvexPolygon& b) {
  if (!(a.area > 0) || !(b.area > 0) || !a.IsNear(b)) return 0;
  constexpr int kMax = 2 * ConvexPolygon::kMax;
  double x[2][kMax], y[2][kMax];
  int size = a.size, now = 0;
  for (int i = 0; i < size; ++i) {
    x[0][i] = a.x[i];
    y[0][i] = a.y[i];
  }
  for (int side = 0, end = 1; side < b.size; ++side, ++end) {
    if (end == b.size) end = 0;
    const double along_x = b.x[end] - b.x[side], along_y = b.y[end] - b.y[side];
    if (along_x == 0 && along_y == 0) continue;
    const double *const from_x = x[now], *const from_y = y[now];
    double *const to_x = x[1 - now], *const to_y = y[1 - now];
    const auto inside = [&](int i) { return along_x * (from_y[i] - b.y[side]) - along_y * (from_x[i] - b.x[side]); };
    int kept = 0;
    double before = size > 0 ? inside(size - 1) : 0;
    for (int i = 0, last = size - 1; i < size; last = i++) {
      const double here = inside(i);
      if ((before >= 0) != (here >= 0) && kept < kMax) {
        // Interpolates from the end that is nearer to the side; a distant one lacks precision.
        const bool from_last = std::fabs(before) < std::fabs(here);
        const int near = from_last ? last : i, far = from_last ? i : last;
        const double part = from_last ? before / (before - here) : here / (here - before);
        to_x[kept] = from_x[near] + part * (from_x[far] - from_x[near]);
        to_y[kept++] = from_y[near] + part * (from_y[far] - from_y[near]);
      }
      if (here >= 0 && kept < kMax) {
        to_x[kept] = from_x[i];
        to_y[kept++] = from_y[i];
      }
      before = here;
    }
    size = kept;
    now = 1 - now;
  }
  double twice = 0;
  for (int i = 2; i < size; ++i) {
    twice +=
        (x[now][i - 1] - x[now][0]) * (y[now][i] - y[now][0]) - (y[now][i - 1] - y[now][0]) * (x[now][i] - x[now][0]);
  }
  return std::min(std::max(twice / 2, 0.0), std::min(a.area, b.area));
}

/// Returns the IoU, or with `iof` the intersection over the area of `a`.
POLYOP_HD inline double IouOrIof(const ConvexPolygon& a, const ConvexPolygon& b, bool iof) {
  const double shared = SharedArea(a, b);
  return shared > 0 ? shared / (iof ? a.area : a.area + b.area - shared) : 0;
}

/// Returns whether the IoU exceeds the threshold.
POLYOP_HD inline bool Overlap(const ConvexPolygon& a, const ConvexPolygon& b, float threshold) {
  const double shared = SharedArea(a, b);
  return shared > threshold * (a.area + b.area - shared);
}

}  // namespace polyop

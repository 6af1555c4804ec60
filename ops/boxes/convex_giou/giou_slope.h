// SPDX-License-Identifier: Apache-2.0
// The generalised IoU of two convex hulls and its gradient with respect to the points of the first, for CPU and GPU.
#pragma once

#include <cmath>

#include "ops/boxes/convex_polygons.h"

namespace polyop {

/// The nine points of a set, followed by the four of a quadrilateral.
struct PointsOfBoth {
  static constexpr int kSet = 9, kAll = 13;

  double x[kAll], y[kAll];
  bool finite = true;

  template <class T>
  POLYOP_HD PointsOfBoth(const T* set, const T* quadrilateral) {
    for (int i = 0; i < kAll; ++i) {
      const T* const point = i < kSet ? set + 2 * i : quadrilateral + 2 * (i - kSet);
      x[i] = ToFloat(point[0]);
      y[i] = ToFloat(point[1]);
      finite = finite && std::fabs(x[i]) < INFINITY && std::fabs(y[i]) < INFINITY;
    }
  }

  /// Writes the corners of the hull of the first `count` points to `corners`, in the direction from the x axis to the
  /// y axis; of equal points, only the first. Requires: `corners` has room for 2 * count. Returns the number of
  /// corners.
  POLYOP_HD int Hull(int count, int* corners) const {
    int order[kAll], distinct = 0;
    for (int i = 0; i < count; ++i) {
      int position = distinct;
      while (position > 0 && IsBefore(i, order[position - 1])) --position;
      if (position > 0 && x[order[position - 1]] == x[i] && y[order[position - 1]] == y[i]) continue;
      for (int k = distinct; k > position; --k) order[k] = order[k - 1];
      order[position] = i;
      ++distinct;
    }
    const int length =
        HullOfSorted(distinct, [&](int a, int b, int c) { return Turn(order[a], order[b], order[c]); }, corners);
    for (int i = 0; i < length; ++i) corners[i] = order[corners[i]];
    return length;
  }

  /// Returns the area of a polygon, or 0 if it is below ConvexPolygon::kMinArea.
  POLYOP_HD double Area(const int* corners, int size) const {
    double twice = 0;
    for (int i = 2; i < size; ++i) twice += Cross(corners[0], corners[i - 1], corners[i]);
    return twice / 2 >= ConvexPolygon::kMinArea ? twice / 2 : 0;
  }

 private:
  POLYOP_HD bool IsBefore(int a, int b) const { return x[a] < x[b] || (x[a] == x[b] && y[a] < y[b]); }
  POLYOP_HD double Cross(int o, int a, int b) const {
    return (x[a] - x[o]) * (y[b] - y[o]) - (y[a] - y[o]) * (x[b] - x[o]);
  }
  // Returns a positive number if the path from a through b to c turns in the direction from x to y.
  POLYOP_HD double Turn(int a, int b, int c) const {
    return (x[b] - x[a]) * (y[c] - y[b]) - (y[b] - y[a]) * (x[c] - x[b]);
  }
};

/// A side of a polygon, from point `from` to point `to`.
struct SideOfHull {
  double x, y, along_x, along_y;
  int from, to;

  POLYOP_HD SideOfHull(const PointsOfBoth& points, int from_point, int to_point)
      : x(points.x[from_point]),
        y(points.y[from_point]),
        along_x(points.x[to_point] - x),
        along_y(points.y[to_point] - y),
        from(from_point),
        to(to_point) {}

  /// Adds `weight` times the gradient of an area to `slope`. The area lies on the left of this side and is bounded by
  /// the part [begin, end] of it. Only points of the set have a gradient.
  POLYOP_HD void AddSlope(double weight, double begin, double end, double* slope) const {
    const double of_to = weight * (end * end - begin * begin) / 2, of_from = weight * (end - begin) - of_to;
    if (from < PointsOfBoth::kSet) {
      slope[2 * from] += of_from * along_y;
      slope[2 * from + 1] -= of_from * along_x;
    }
    if (to < PointsOfBoth::kSet) {
      slope[2 * to] += of_to * along_y;
      slope[2 * to + 1] -= of_to * along_x;
    }
  }

  /// Computes the part [begin, end] of this side that lies within a convex polygon or on its border. The part is empty
  /// if begin >= end.
  POLYOP_HD void PartWithin(const ConvexPolygon& polygon, double* begin, double* end) const {
    *begin = 0;
    *end = 1;
    for (int i = 0, next = 1; i < polygon.size; ++i, ++next) {
      if (next == polygon.size) next = 0;
      const double line_x = polygon.x[next] - polygon.x[i], line_y = polygon.y[next] - polygon.y[i];
      const double before = line_x * (y - polygon.y[i]) - line_y * (x - polygon.x[i]);
      const double after = line_x * (y + along_y - polygon.y[i]) - line_y * (x + along_x - polygon.x[i]);
      if (before < 0 && after < 0) {
        *end = 0;
      } else if (before < 0) {
        *begin = std::max(*begin, before / (before - after));
      } else if (after < 0) {
        *end = std::min(*end, before / (before - after));
      }
    }
  }
};

/// Writes the gradient with respect to the set's 18 coordinates, followed by the GIoU, to `output`.
template <class T>
POLYOP_HD void ConvexGiouWithSlope(const T* set, const T* quadrilateral, T* output) {
  constexpr int kGradient = 2 * PointsOfBoth::kSet;
  const PointsOfBoth points(set, quadrilateral);
  double slope[kGradient] = {}, giou = points.finite ? 0 : NAN;
  int corners[2 * PointsOfBoth::kAll];
  int size = points.finite ? points.Hull(PointsOfBoth::kAll, corners) : 0;
  const double around = points.Area(corners, size);
  if (around > 0) {
    const ConvexPolygon own = ConvexPolygon::HullOf<9>(set), other = ConvexPolygon::HullOf<4>(quadrilateral);
    const double shared = SharedArea(own, other), united = own.area + other.area - shared;
    const double iou = united > 0 ? shared / united : 0, by_united = united > 0 ? 1 / united : 0;
    giou = iou - (around - united) / around;
    // The derivatives of the GIoU with respect to the three areas that depend on the set.
    const double of_around = -united / around / around, of_own = 1 / around - iou * by_united;
    const double of_shared = (1 + iou) * by_united - 1 / around;
    const auto for_sides = [&](const auto& add) {
      for (int i = 0; i < size; ++i) add(SideOfHull(points, corners[i], corners[i + 1 < size ? i + 1 : 0]));
    };
    for_sides([&](const SideOfHull& side) { side.AddSlope(of_around, 0, 1, slope); });
    size = own.area > 0 ? points.Hull(PointsOfBoth::kSet, corners) : 0;
    for_sides([&](const SideOfHull& side) {
      side.AddSlope(of_own, 0, 1, slope);
      double begin = 0, end = 0;
      if (other.area > 0) side.PartWithin(other, &begin, &end);
      if (begin < end) side.AddSlope(of_shared, begin, end, slope);
    });
  }
  for (int k = 0; k < kGradient; ++k) output[k] = FromFloat<T>(static_cast<float>(points.finite ? slope[k] : NAN));
  output[kGradient] = FromFloat<T>(static_cast<float>(giou));
}

}  // namespace polyop

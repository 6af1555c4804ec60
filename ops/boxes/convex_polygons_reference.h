// SPDX-License-Identifier: Apache-2.0
// Overlap of convex polygons, computed in another way than the kernels do: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/boxes/rotated_boxes_reference.h"

namespace polyop::reference {

/// Positive if c lies to the left of the line from a to b.
inline double Side(const Point& a, const Point& b, const Point& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

inline double SignedArea(const std::vector<Point>& corners) {
  double twice = 0;
  for (size_t i = 2; i < corners.size(); ++i) twice += Side(corners[0], corners[i - 1], corners[i]);
  return twice / 2;
}

inline std::vector<Point> PointsOf(const double* row, int count) {
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) points.push_back({row[2 * i], row[2 * i + 1]});
  const bool finite = std::all_of(row, row + 2 * count, [](double v) { return std::isfinite(v); });
  return finite ? points : std::vector<Point>();
}

/// Returns the corners anticlockwise, or none if the polygon overlaps nothing.
inline std::vector<Point> LargeEnough(std::vector<Point> corners) {
  if (SignedArea(corners) < 0) std::reverse(corners.begin(), corners.end());
  return SignedArea(corners) >= 1e-14 ? corners : std::vector<Point>();
}

/// Returns the convex hull of a row of points (gift wrapping from the lowest point).
inline std::vector<Point> HullOf(const double* row, int count) {
  const std::vector<Point> points = PointsOf(row, count);
  if (points.empty()) return {};
  const auto lowest = std::min_element(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
  });
  std::vector<Point> hull = {*lowest};
  while (hull.size() <= points.size()) {
    const Point& at = hull.back();
    const Point* next = nullptr;
    for (const Point& p : points) {
      if (p.x == at.x && p.y == at.y) continue;
      const double side = next == nullptr ? -1 : Side(at, *next, p);
      const bool farther = side == 0 && std::hypot(p.x - at.x, p.y - at.y) > std::hypot(next->x - at.x, next->y - at.y);
      if (side < 0 || farther) next = &p;
    }
    if (next == nullptr || (next->x == hull[0].x && next->y == hull[0].y)) break;
    hull.push_back(*next);
  }
  return LargeEnough(hull);
}

/// Finds the corners of the intersection: corners of one inside the other, and crossings of sides.
inline double SharedArea(const std::vector<Point>& a, const std::vector<Point>& b) {
  std::vector<Point> corners;
  const auto add_inside = [&](const std::vector<Point>& of, const std::vector<Point>& in) {
    for (const Point& p : of) {
      bool inside = true;
      for (size_t i = 0; i < in.size(); ++i) inside = inside && Side(in[i], in[(i + 1) % in.size()], p) >= 0;
      if (inside) corners.push_back(p);
    }
  };
  add_inside(a, b);
  add_inside(b, a);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      const Point &from = a[i], &to = a[(i + 1) % a.size()], &start = b[k], &end = b[(k + 1) % b.size()];
      const double before = Side(start, end, from), after = Side(start, end, to);
      const double left = Side(from, to, start), right = Side(from, to, end);
      if ((before >= 0) == (after >= 0) || (left >= 0) == (right >= 0)) continue;
      // Interpolates along the shorter side, whose ends give the more precise crossing.
      const bool of_a = std::hypot(to.x - from.x, to.y - from.y) < std::hypot(end.x - start.x, end.y - start.y);
      const Point &near = of_a ? from : start, &far = of_a ? to : end;
      const double part = of_a ? before / (before - after) : left / (left - right);
      corners.push_back({near.x + part * (far.x - near.x), near.y + part * (far.y - near.y)});
    }
  }
  return AreaOfCorners(corners);
}

/// Returns the IoU, or with `iof` the intersection over the area of `a`.
inline double IouOrIof(const std::vector<Point>& a, const std::vector<Point>& b, bool iof) {
  if (a.empty() || b.empty()) return 0;
  const double area_a = SignedArea(a), area_b = SignedArea(b), shared = std::min({SharedArea(a, b), area_a, area_b});
  return shared / (iof ? area_a : area_a + area_b - shared);
}

}  // namespace polyop::reference

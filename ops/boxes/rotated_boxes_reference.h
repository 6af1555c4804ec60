// SPDX-License-Identifier: Apache-2.0
// Intersection of two rotated boxes, computed in another way than the kernels do: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace polyop::reference {

struct Point {
  double x, y;
};

/// Returns the area of a convex polygon whose corners are in any order and may repeat; sorts them by angle around their
/// mean.
inline double AreaOfCorners(std::vector<Point> corners) {
  if (corners.size() < 3) return 0;
  Point middle{0, 0}, extent{0, 0};
  for (const Point& p : corners) {
    middle.x += p.x / static_cast<double>(corners.size());
    middle.y += p.y / static_cast<double>(corners.size());
  }
  for (Point& p : corners) {
    p = {p.x - middle.x, p.y - middle.y};
    extent = {std::max(extent.x, std::fabs(p.x)), std::max(extent.y, std::fabs(p.y))};
  }
  if (!(extent.x > 0) || !(extent.y > 0)) return 0;
  for (Point& p : corners) p = {p.x / extent.x, p.y / extent.y};  // else the angles of a thin polygon hardly differ
  std::sort(corners.begin(), corners.end(),
            [](const Point& l, const Point& r) { return std::atan2(l.y, l.x) < std::atan2(r.y, r.x); });
  double twice = 0;
  for (size_t i = 0; i < corners.size(); ++i) {
    const Point &l = corners[i], &r = corners[(i + 1) % corners.size()];
    twice += l.x * r.y - l.y * r.x;
  }
  return std::fabs(twice) / 2 * extent.x * extent.y;
}

/// Finds the corners of the intersection: corners of one box inside the other, and crossings of sides. The frame is
/// that of the larger box. Along each axis, its origin is the centre of the box that is shorter there, so that a small
/// or thin box keeps its precision.
template <class T>
double RotatedIntersection(const T* first, const T* second) {
  const auto size = [](const T* box) { return std::fabs(double{box[2]}) + std::fabs(double{box[3]}); };
  const T *const large = size(first) < size(second) ? second : first, *const small = large == first ? second : first;
  const double c = std::cos(double{large[4]}), s = std::sin(double{large[4]});
  const double cs = std::cos(double{small[4]}), ss = std::sin(double{small[4]});
  const double cosine = c * cs + s * ss, sine = ss * c - cs * s;
  const double dx = double{small[0]} - large[0], dy = double{small[1]} - large[1];
  const Point away{dx * c + dy * s, dy * c - dx * s};
  const Point half_small{std::fabs(double{small[2]}) / 2, std::fabs(double{small[3]}) / 2};
  const Point half_large{std::fabs(double{large[2]}) / 2, std::fabs(double{large[3]}) / 2};
  const Point reach{half_small.x * std::fabs(cosine) + half_small.y * std::fabs(sine),
                    half_small.x * std::fabs(sine) + half_small.y * std::fabs(cosine)};
  const Point at{half_large.x < reach.x ? away.x : 0, half_large.y < reach.y ? away.y : 0};  // of the smaller box
  const Point low{-half_large.x + (at.x - away.x), -half_large.y + (at.y - away.y)};
  const Point high{half_large.x + (at.x - away.x), half_large.y + (at.y - away.y)};
  std::vector<Point> rotated, boundary;
  for (const auto& [u, v] : {Point{-1, -1}, Point{1, -1}, Point{1, 1}, Point{-1, 1}}) {
    const double x = u * half_small.x, y = v * half_small.y;
    rotated.push_back({at.x + (x * cosine - y * sine), at.y + (x * sine + y * cosine)});
  }
  const auto between = [](double value, double from, double to) { return value >= from && value <= to; };
  for (size_t i = 0; i < 4; ++i) {
    const Point &p = rotated[i], &q = rotated[(i + 1) % 4];
    if (between(p.x, low.x, high.x) && between(p.y, low.y, high.y)) boundary.push_back(p);
    for (double side : {low.x, high.x}) {
      const double y = p.y + (side - p.x) / (q.x - p.x) * (q.y - p.y);
      if (between(side, std::min(p.x, q.x), std::max(p.x, q.x)) && between(y, low.y, high.y))
        boundary.push_back({side, y});
    }
    for (double side : {low.y, high.y}) {
      const double x = p.x + (side - p.y) / (q.y - p.y) * (q.x - p.x);
      if (between(side, std::min(p.y, q.y), std::max(p.y, q.y)) && between(x, low.x, high.x))
        boundary.push_back({x, side});
    }
  }
  for (const Point& corner : {low, Point{high.x, low.y}, high, Point{low.x, high.y}}) {
    const double x = corner.x - at.x, y = corner.y - at.y;
    // Tolerates rounding errors, but only a small fraction of a thin side.
    const double slack = 1e-12 * (std::fabs(x) + std::fabs(y) + half_small.x + half_small.y);
    const auto within = [slack](double coordinate, double half) {
      return std::fabs(coordinate) <= half + std::min(slack, 1e-6 * half);
    };
    if (within(x * cosine + y * sine, half_small.x) && within(y * cosine - x * sine, half_small.y)) {
      boundary.push_back(corner);
    }
  }
  return AreaOfCorners(std::move(boundary));
}

/// Returns 0 for boxes with an area below 1e-14 or NaN.
inline double RotatedIou(const float* a, const float* b) {
  const double area_a = static_cast<double>(a[2]) * a[3], area_b = static_cast<double>(b[2]) * b[3];
  if (!(area_a >= 1e-14) || !(area_b >= 1e-14)) return 0;
  for (int i = 0; i < 5; ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return 0;
  }
  const double intersection = std::min({RotatedIntersection(a, b), area_a, area_b});
  return intersection / (area_a + area_b - intersection);
}

}  // namespace polyop::reference

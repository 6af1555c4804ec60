// The area that two rotated boxes share, by another way than the kernels': for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace polyop::reference {

struct Point {
  double x, y;
};

/// Corners in turn. The angle turns the x axis towards the y axis.
inline std::vector<Point> Corners(const double* box) {
  const double c = std::cos(box[4]), s = std::sin(box[4]);
  std::vector<Point> corners;
  for (const auto& [u, v] : {Point{-0.5, -0.5}, Point{0.5, -0.5}, Point{0.5, 0.5}, Point{-0.5, 0.5}}) {
    const double x = u * box[2], y = v * box[3];
    corners.push_back({box[0] + x * c - y * s, box[1] + x * s + y * c});
  }
  return corners;
}

/// By the boundary of the intersection: corners of one inside the other and crossings of sides, sorted by angle about
/// their middle.
template <class T>
double RotatedIntersection(const T* first, const T* second) {
  // About the middle of the first, wherever both are: far out the corners would lie on each other.
  const double a[5] = {0, 0, first[2], first[3], first[4]};
  const double b[5] = {static_cast<double>(second[0]) - first[0], static_cast<double>(second[1]) - first[1], second[2],
                       second[3], second[4]};
  const auto inside = [](const Point& p, const double* box) {
    const double c = std::cos(box[4]), s = std::sin(box[4]);
    const double dx = p.x - box[0], dy = p.y - box[1];
    // For rounding; but of a thin side only a small part.
    const double slack = 1e-12 * (std::fabs(box[0]) + std::fabs(box[1]) + std::fabs(box[2]) + std::fabs(box[3]));
    const auto within = [slack](double distance, double side) {
      return std::fabs(distance) <= std::fabs(side) / 2 + std::min(slack, 1e-6 * std::fabs(side));
    };
    return within(dx * c + dy * s, box[2]) && within(dy * c - dx * s, box[3]);
  };
  const std::vector<Point> p = Corners(a), q = Corners(b);
  std::vector<Point> boundary;
  for (const Point& corner : p) {
    if (inside(corner, b)) boundary.push_back(corner);
  }
  for (const Point& corner : q) {
    if (inside(corner, a)) boundary.push_back(corner);
  }
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      const Point &p0 = p[i], &p1 = p[(i + 1) % 4], &q0 = q[j], &q1 = q[(j + 1) % 4];
      const double ux = p1.x - p0.x, uy = p1.y - p0.y, vx = q1.x - q0.x, vy = q1.y - q0.y;
      const double cross = ux * vy - uy * vx;
      if (std::fabs(cross) <= 1e-14 * std::hypot(ux, uy) * std::hypot(vx, vy)) continue;
      const double t = ((q0.x - p0.x) * vy - (q0.y - p0.y) * vx) / cross;
      const double w = ((q0.x - p0.x) * uy - (q0.y - p0.y) * ux) / cross;
      if (t >= 0 && t <= 1 && w >= 0 && w <= 1) boundary.push_back({p0.x + t * ux, p0.y + t * uy});
    }
  }
  if (boundary.size() < 3) return 0;
  Point middle{0, 0};
  for (const Point& point : boundary) {
    middle.x += point.x / static_cast<double>(boundary.size());
    middle.y += point.y / static_cast<double>(boundary.size());
  }
  std::sort(boundary.begin(), boundary.end(), [&](const Point& l, const Point& r) {
    return std::atan2(l.y - middle.y, l.x - middle.x) < std::atan2(r.y - middle.y, r.x - middle.x);
  });
  double twice = 0;
  for (size_t i = 0; i < boundary.size(); ++i) {
    const Point &l = boundary[i], &r = boundary[(i + 1) % boundary.size()];
    twice += (l.x - middle.x) * (r.y - middle.y) - (r.x - middle.x) * (l.y - middle.y);
  }
  return std::fabs(twice) / 2;
}

/// 0 for boxes of an area below 1e-14 and for what is no number.
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

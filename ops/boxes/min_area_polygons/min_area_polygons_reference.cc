// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "ops/boxes/min_area_polygons/min_area_polygons.h"

namespace polyop {
namespace {

using Point = std::complex<double>;

double Cross(Point a, Point b) { return a.real() * b.imag() - a.imag() * b.real(); }

// Returns the corners of the convex hull, by the monotone chain algorithm.
std::vector<Point> HullOf(std::vector<Point> points) {
  const auto before = [](Point a, Point b) {
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  };
  std::sort(points.begin(), points.end(), before);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  if (points.size() < 3) return points;
  std::vector<Point> hull;
  for (int side = 0; side < 2; ++side) {
    const size_t first = hull.size();
    for (const Point& p : points) {
      while (hull.size() >= first + 2 && Cross(hull.back() - hull.end()[-2], p - hull.back()) <= 0) hull.pop_back();
      hull.push_back(p);
    }
    hull.pop_back();  // it is the first point of the other chain
    std::reverse(points.begin(), points.end());
  }
  return hull;
}

struct Rectangle {
  double angle = 0, area = std::numeric_limits<double>::infinity();
  Point corners[4];
};

// Returns the rectangle around points with a side along `side`, rotated by right angles into the first quadrant.
Rectangle Around(const std::vector<Point>& points, Point side) {
  while (!(side.real() > 0 && side.imag() >= 0)) side *= Point(0, 1);
  side /= std::abs(side);
  double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
  for (const Point& p : points) {
    const Point projected = p * std::conj(side);
    low[0] = std::min(low[0], projected.real());
    high[0] = std::max(high[0], projected.real());
    low[1] = std::min(low[1], projected.imag());
    high[1] = std::max(high[1], projected.imag());
  }
  Rectangle rectangle;
  rectangle.angle = std::arg(side);
  rectangle.area = (high[0] - low[0]) * (high[1] - low[1]);
  const Point corners[4] = {{high[0], low[1]}, {low[0], low[1]}, {low[0], high[1]}, {high[0], high[1]}};
  for (int c = 0; c < 4; ++c) rectangle.corners[c] = corners[c] * side;
  return rectangle;
}

Status MinAreaPolygonsReference(const MinAreaPolygons&, const Context&, Tensor<const double, 2> pointsets,
                                Tensor<double, 2> polygons) {
  for (int64_t i = 0; i < pointsets.dim(0); ++i) {
    const double* set = pointsets.data() + 18 * i;
    if (!std::all_of(set, set + 18, [](double v) { return std::isfinite(v); })) {
      std::fill_n(polygons.data() + 8 * i, 8, std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    std::vector<Point> points;
    for (int p = 0; p < 9; ++p) points.emplace_back(set[2 * p] - set[0], set[2 * p + 1] - set[1]);
    const std::vector<Point> hull = HullOf(points);
    std::vector<Rectangle> rectangles;
    for (size_t c = 0; hull.size() > 1 && c < hull.size(); ++c) {
      rectangles.push_back(Around(points, hull[(c + 1) % hull.size()] - hull[c]));
    }
    if (rectangles.empty()) rectangles.push_back(Around(points, 1));
    double min_area = INFINITY;
    for (const Rectangle& r : rectangles) min_area = std::min(min_area, r.area);
    Rectangle best;
    best.angle = INFINITY;
    for (const Rectangle& r : rectangles) {
      if (r.area <= min_area * (1 + 1e-9) && r.angle < best.angle) best = r;
    }
    for (int c = 0; c < 4; ++c) {
      polygons[8 * i + 2 * c] = best.corners[c].real() + set[0];
      polygons[8 * i + 2 * c + 1] = best.corners[c].imag() + set[1];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(MinAreaPolygons, MinAreaPolygonsReference);

}  // namespace
}  // namespace polyop

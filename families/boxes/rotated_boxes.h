// Rotated boxes (cx, cy, width, height, angle in radians) and the area that two of them share.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/host_device.h"

namespace polyop {

/// A box with what every pair needs. The angle turns the x axis towards the y axis.
struct RotatedBox {
  double x = 0, y = 0;
  double half_width = 0, half_height = 0;
  double cosine = 1, sine = 0;
  double area = 0;  // width * height: negative or NaN for boxes that are none

  POLYOP_HD static RotatedBox Of(const float* box) {
    const double width = box[2], height = box[3], angle = box[4];
    return {box[0],          box[1],          std::fabs(width) / 2, std::fabs(height) / 2,
            std::cos(angle), std::sin(angle), width * height};
  }

  /// Half the extents of the upright box around it.
  POLYOP_HD double ReachX() const { return half_width * std::fabs(cosine) + half_height * std::fabs(sine); }
  POLYOP_HD double ReachY() const { return half_width * std::fabs(sine) + half_height * std::fabs(cosine); }
};

namespace rotated_boxes_internal {

// A convex polygon; four corners cut four times have eight at most.
struct Polygon {
  double x[8], y[8];
  int size = 0;

  POLYOP_HD void Add(double px, double py) {
    x[size] = px;
    y[size++] = py;
  }
  POLYOP_HD double Area() const {
    double twice = 0;
    for (int i = 0, last = size - 1; i < size; last = i++) twice += x[last] * y[i] - x[i] * y[last];
    return std::fabs(twice) / 2;
  }
};

// What lies on the inner side: sign * coordinate <= limit. Coordinate 0 is x, 1 is y.
POLYOP_HD inline Polygon Cut(const Polygon& from, int coordinate, double sign, double limit) {
  Polygon result;
  for (int i = 0, last = from.size - 1; i < from.size; last = i++) {
    const double a = limit - sign * (coordinate == 0 ? from.x[last] : from.y[last]);
    const double b = limit - sign * (coordinate == 0 ? from.x[i] : from.y[i]);
    if ((a >= 0) != (b >= 0)) {
      const double t = a / (a - b);
      result.Add(from.x[last] + t * (from.x[i] - from.x[last]), from.y[last] + t * (from.y[i] - from.y[last]));
    }
    if (b >= 0) result.Add(from.x[i], from.y[i]);
  }
  return result;
}

}  // namespace rotated_boxes_internal

/// The area that both boxes cover: `b` is cut by the four sides of `a` (Sutherland and Hodgman, Reentrant Polygon
/// Clipping, 1974) in the frame where `a` is upright and at the origin, so large coordinates lose no precision.
POLYOP_HD inline double IntersectionArea(const RotatedBox& a, const RotatedBox& b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double x = dx * a.cosine + dy * a.sine, y = dy * a.cosine - dx * a.sine;
  const double cosine = a.cosine * b.cosine + a.sine * b.sine, sine = b.sine * a.cosine - b.cosine * a.sine;
  const double wx = b.half_width * cosine, wy = b.half_width * sine;
  const double hx = -b.half_height * sine, hy = b.half_height * cosine;
  rotated_boxes_internal::Polygon polygon;
  polygon.Add(x + wx + hx, y + wy + hy);
  polygon.Add(x - wx + hx, y - wy + hy);
  polygon.Add(x - wx - hx, y - wy - hy);
  polygon.Add(x + wx - hx, y + wy - hy);
  for (double sign : {1.0, -1.0}) {
    polygon = rotated_boxes_internal::Cut(polygon, 0, sign, a.half_width);
    polygon = rotated_boxes_internal::Cut(polygon, 1, sign, a.half_height);
  }
  return polygon.Area();
}

/// The same, at most the area of either box, whatever was rounded.
POLYOP_HD inline double SharedArea(const RotatedBox& a, const RotatedBox& b) {
  return std::min(IntersectionArea(a, b), std::min(a.area, b.area));
}

/// Whether two boxes are surely apart: the circles around them do not touch. Most pairs are.
POLYOP_HD inline bool SurelyApart(const RotatedBox& a, const RotatedBox& b) {
  const double dx = a.x - b.x, dy = a.y - b.y;
  const double reach = std::sqrt(a.half_width * a.half_width + a.half_height * a.half_height) +
                       std::sqrt(b.half_width * b.half_width + b.half_height * b.half_height);
  return dx * dx + dy * dy > reach * reach * (1 + 1e-9);
}

/// When two boxes overlap too much.
struct RotatedOverlapRule {
  float threshold;
  double least_area = 1e-14;  // a box of less overlaps nothing
  double least_united = 0;    // what the area of both together counts at least

  /// Whether intersection > threshold * union. False for boxes of (almost) no area and for what is no number.
  POLYOP_HD bool Overlaps(const RotatedBox& a, const RotatedBox& b) const {
    if (!(a.area >= least_area) || !(b.area >= least_area)) return false;
    const double intersection = SharedArea(a, b);
    return intersection > threshold * std::max(a.area + b.area - intersection, least_united);
  }
};

}  // namespace polyop

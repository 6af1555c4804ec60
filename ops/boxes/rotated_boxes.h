// SPDX-License-Identifier: Apache-2.0
// Rotated boxes (cx, cy, width, height, angle in radians) and the area of their intersection.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/host_device.h"

namespace polyop {

/// A box with precomputed trigonometry. The angle rotates the x axis towards the y axis.
struct RotatedBox {
  double x = 0, y = 0;
  double half_width = 0, half_height = 0;
  double cosine = 1, sine = 0;
  double reach_x = 0, reach_y = 0;  // half the extents of the upright bounds
  double area = 0;                  // width * height; negative or NaN if the row is no box

  POLYOP_HD static RotatedBox Of(const float* box) {
    const double width = box[2], height = box[3], angle = box[4], c = std::cos(angle), s = std::sin(angle);
    const double half_width = std::fabs(width) / 2, half_height = std::fabs(height) / 2;
    return {box[0],
            box[1],
            half_width,
            half_height,
            c,
            s,
            half_width * std::fabs(c) + half_height * std::fabs(s),
            half_width * std::fabs(s) + half_height * std::fabs(c),
            width * height};
  }
};

namespace rotated_boxes_internal {

// A convex polygon. Four corners that are clipped four times become at most eight.
struct Polygon {
  double at[2][8];  // x and y
  int size = 0;

  POLYOP_HD void Add(double x, double y) {
    at[0][size] = x;
    at[1][size++] = y;
  }
  /// Returns whether all corners satisfy sign * coordinate <= limit. Coordinate 0 is x, 1 is y.
  POLYOP_HD bool IsInside(int coordinate, double sign, double limit) const {
    for (int i = 0; i < size; ++i) {
      if (!(limit - sign * at[coordinate][i] >= 0)) return false;
    }
    return true;
  }
  /// Becomes the part of `from` where sign * coordinate <= limit.
  POLYOP_HD void Cut(const Polygon& from, int coordinate, double sign, double limit) {
    const double *const across = from.at[coordinate], *const along = from.at[1 - coordinate];
    double *const to_across = at[coordinate], *const to_along = at[1 - coordinate];
    size = 0;
    double before = limit - sign * across[from.size - 1], last = along[from.size - 1];
    for (int i = 0; i < from.size; ++i) {
      const double here = limit - sign * across[i], position = along[i];
      if ((before >= 0) != (here >= 0)) {  // the new corner lies exactly on the side
        to_across[size] = sign * limit;
        to_along[size++] = last + before / (before - here) * (position - last);
      }
      if (here >= 0) {
        to_across[size] = across[i];
        to_along[size++] = position;
      }
      before = here;
      last = position;
    }
  }
  POLYOP_HD double Area() const {
    double twice = 0;
    for (int i = 0, last = size - 1; i < size; last = i++) twice += at[0][last] * at[1][i] - at[0][i] * at[1][last];
    return std::fabs(twice) / 2;
  }
};

}  // namespace rotated_boxes_internal

/// Returns the area of the intersection: the smaller box is clipped by the four sides of the larger one (Sutherland and
/// Hodgman, Reentrant Polygon Clipping, 1974) in a frame where the larger one is upright. Along each axis, the origin
/// of the frame is the centre of the box that is shorter there, so that small boxes keep their precision next to large
/// coordinates and large boxes.
POLYOP_HD inline double IntersectionArea(const RotatedBox& a, const RotatedBox& b) {
  const bool is_first_smaller = a.half_width + a.half_height < b.half_width + b.half_height;
  const RotatedBox &small = is_first_smaller ? a : b, &large = is_first_smaller ? b : a;
  const double dx = small.x - large.x, dy = small.y - large.y;
  const double x = dx * large.cosine + dy * large.sine, y = dy * large.cosine - dx * large.sine;
  const double cosine = large.cosine * small.cosine + large.sine * small.sine;
  const double sine = small.sine * large.cosine - small.cosine * large.sine;
  const double wx = small.half_width * cosine, wy = small.half_width * sine;
  const double hx = -small.half_height * sine, hy = small.half_height * cosine;
  // The centre of the smaller box in the frame; that of the larger one is (at_x - x, at_y - y).
  const double at_x = large.half_width < std::fabs(wx) + std::fabs(hx) ? x : 0;
  const double at_y = large.half_height < std::fabs(wy) + std::fabs(hy) ? y : 0;
  rotated_boxes_internal::Polygon polygons[2];
  int now = 0;
  polygons[0].Add(at_x + wx + hx, at_y + wy + hy);
  polygons[0].Add(at_x - wx + hx, at_y - wy + hy);
  polygons[0].Add(at_x - wx - hx, at_y - wy - hy);
  polygons[0].Add(at_x + wx - hx, at_y + wy - hy);
  for (double sign : {1.0, -1.0}) {
    for (int coordinate = 0; coordinate < 2; ++coordinate) {
      const double limit =
          coordinate == 0 ? large.half_width + sign * (at_x - x) : large.half_height + sign * (at_y - y);
      if (polygons[now].IsInside(coordinate, sign, limit)) continue;
      polygons[1 - now].Cut(polygons[now], coordinate, sign, limit);
      now = 1 - now;
      if (polygons[now].size == 0) return 0;
    }
  }
  return polygons[now].Area();
}

/// Returns IntersectionArea, limited by cheap bounds: 0 if the upright bounds do not touch, and never more than their
/// intersection or either area. Thus a preliminary test of these bounds alone never contradicts the exact result.
POLYOP_HD inline double SharedArea(const RotatedBox& a, const RotatedBox& b) {
  const auto shared = [](double reach, double other, double away) {
    const double longer = std::max(reach, other), shorter = std::min(reach, other);
    return std::min(longer - std::fabs(away) + shorter, 2 * shorter);
  };
  const double width = shared(a.reach_x, b.reach_x, a.x - b.x), height = shared(a.reach_y, b.reach_y, a.y - b.y);
  if (!(width > 0) || !(height > 0)) return 0;
  return std::min(std::min(IntersectionArea(a, b), width * height), std::min(a.area, b.area));
}

/// The rule by which one box suppresses another.
struct RotatedOverlapRule {
  float threshold;
  double min_area = 1e-14;  // smaller boxes overlap nothing
  double min_united = 0;    // lower bound of the union

  /// Returns whether intersection > threshold * union. False for boxes below min_area and for NaN.
  POLYOP_HD bool Overlaps(const RotatedBox& a, const RotatedBox& b) const {
    if (!(a.area >= min_area) || !(b.area >= min_area)) return false;
    const double intersection = SharedArea(a, b);
    return intersection > threshold * std::max(a.area + b.area - intersection, min_united);
  }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// The IoU of two rotated boxes and its derivatives by clipping a polygon: for reference kernels only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace polyop::reference {

/// A box (x, y, z, w, h, l, alpha), and derivatives with respect to it.
using IouBox = std::array<double, 7>;

/// Returns the box of a row of `dimensions` dimensions. In two dimensions z is 0 and l is 1.
inline IouBox IouBoxOf(const double* row, int64_t dimensions) {
  if (dimensions == 3) return {row[0], row[1], row[2], row[3], row[4], row[5], row[6]};
  return {row[0], row[1], 0, row[2], row[3], 1, row[4]};
}

/// A corner of a polygon, and the sides of both boxes on which the edge to the next corner lies: 0 to 3 for the sides
/// in the directions x, y, -x, -y of the box's axes, -1 for none.
struct ClippedCorner {
  double x, y;
  int side_of_a, side_of_b;
};
using ClippedPolygon = std::vector<ClippedCorner>;

/// Clips to the half-plane normal_x * x + normal_y * y <= limit, whose border is a side of the second box.
inline ClippedPolygon ClipToSide(const ClippedPolygon& polygon, double normal_x, double normal_y, double limit,
                                 int side) {
  ClippedPolygon clipped;
  const auto depth = [&](const ClippedCorner& p) { return limit - (normal_x * p.x + normal_y * p.y); };
  for (size_t i = 0; i < polygon.size(); ++i) {
    const ClippedCorner &here = polygon[i], &next = polygon[(i + 1) % polygon.size()];
    const double depth_here = depth(here), depth_next = depth(next);
    if (depth_here >= 0) {
      clipped.push_back(here);
      if (depth_here == 0 && depth_next == 0) clipped.back().side_of_b = side;
    }
    if ((depth_here >= 0) == (depth_next >= 0)) continue;
    const double part = depth_here / (depth_here - depth_next);
    const double x = here.x + part * (next.x - here.x), y = here.y + part * (next.y - here.y);
    if (depth_here >= 0) {
      clipped.push_back({x, y, -1, side});
    } else {
      clipped.push_back({x, y, here.side_of_a, here.side_of_b});
    }
  }
  return clipped;
}

/// Adds the derivatives of the area with respect to a box whose side `side` contains the edge. The box has its
/// centre in the frame of the corners, whose x axis is (axis_x, axis_y).
inline void AddEdge(const ClippedCorner& from, const ClippedCorner& to, int side, double center_x, double center_y,
                    double axis_x, double axis_y, const IouBox& box, double weight, IouBox* slope) {
  // The outward normal times the length. The corners are in the direction from x to y.
  const double normal_x = weight * (to.y - from.y), normal_y = weight * (from.x - to.x);
  (*slope)[0] += normal_x * axis_x - normal_y * axis_y;
  (*slope)[1] += normal_x * axis_y + normal_y * axis_x;
  const double middle_x = (from.x + to.x) / 2 - center_x, middle_y = (from.y + to.y) / 2 - center_y;
  (*slope)[6] += normal_y * middle_x - normal_x * middle_y;
  const size_t size = side % 2 == 0 ? 3 : 4;
  const double sign = box[size] > 0 ? 1 : box[size] < 0 ? -1 : 0;
  (*slope)[size] += sign * std::hypot(normal_x, normal_y) / 2;
}

/// Returns the area of the intersection of the rectangles, and adds its derivatives.
inline double SharedArea(const IouBox& a, const IouBox& b, IouBox* of_a, IouBox* of_b) {
  // The frame has the axes of the first box and its origin at the centre of the second one.
  const double axis_x = std::cos(a[6]), axis_y = std::sin(a[6]);
  const double c = std::cos(b[6] - a[6]), s = std::sin(b[6] - a[6]);
  const double dx = b[0] - a[0], dy = b[1] - a[1];
  const double u = dx * axis_x + dy * axis_y, v = dy * axis_x - dx * axis_y;
  const double half_width = std::fabs(a[3]) / 2, half_height = std::fabs(a[4]) / 2;
  const double w = std::fabs(b[3]) / 2, h = std::fabs(b[4]) / 2;
  ClippedPolygon polygon = {{half_width - u, -half_height - v, 0, -1},
                            {half_width - u, half_height - v, 1, -1},
                            {-half_width - u, half_height - v, 2, -1},
                            {-half_width - u, -half_height - v, 3, -1}};
  polygon = ClipToSide(polygon, c, s, w, 0);
  polygon = ClipToSide(polygon, -s, c, h, 1);
  polygon = ClipToSide(polygon, -c, -s, w, 2);
  polygon = ClipToSide(polygon, s, -c, h, 3);
  double twice = 0;
  for (size_t i = 2; i < polygon.size(); ++i) {
    const ClippedCorner &o = polygon[0], &p = polygon[i - 1], &q = polygon[i];
    twice += (p.x - o.x) * (q.y - o.y) - (p.y - o.y) * (q.x - o.x);
  }
  if (!(twice > 0)) return 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const ClippedCorner &from = polygon[i], &to = polygon[(i + 1) % polygon.size()];
    const double weight = from.side_of_a >= 0 && from.side_of_b >= 0 ? 0.5 : 1;
    if (from.side_of_a >= 0) AddEdge(from, to, from.side_of_a, -u, -v, axis_x, axis_y, a, weight, of_a);
    if (from.side_of_b >= 0) AddEdge(from, to, from.side_of_b, 0, 0, axis_x, axis_y, b, weight, of_b);
  }
  return twice / 2;
}

/// Returns the IoU, and sets its derivatives with respect to both boxes.
inline double IouWithSlopes(const IouBox& a, const IouBox& b, IouBox* of_a, IouBox* of_b) {
  of_a->fill(0);
  of_b->fill(0);
  for (size_t k = 0; k < a.size(); ++k) {
    if (std::isfinite(a[k]) && std::isfinite(b[k])) continue;
    of_a->fill(NAN);
    of_b->fill(NAN);
    return NAN;
  }
  const double area = SharedArea(a, b, of_a, of_b);
  // The overlap along z, and the derivatives of the intersection's volume.
  const double top_a = a[2] + a[5] / 2, top_b = b[2] + b[5] / 2, low_a = a[2] - a[5] / 2, low_b = b[2] - b[5] / 2;
  const double overlap = std::min(top_a, top_b) - std::max(low_a, low_b);
  const auto share = [](double own, double other) { return own == other ? 0.5 : own < other ? 1.0 : 0.0; };
  for (const bool first : {true, false}) {
    IouBox& slope = first ? *of_a : *of_b;
    for (double& partial : slope) partial *= std::max(overlap, 0.0);
    if (!(overlap >= 0)) continue;
    const double top = first ? share(top_a, top_b) : share(top_b, top_a);
    const double low = first ? share(-low_a, -low_b) : share(-low_b, -low_a);
    slope[2] = area * (top - low);
    slope[5] = area * (top + low) / 2;
  }
  const double shared = area * std::max(overlap, 0.0), united = a[3] * a[4] * a[5] + b[3] * b[4] * b[5] - shared;
  // The quotient rule; the union is the sum of both volumes minus the intersection.
  for (const bool first : {true, false}) {
    const IouBox& box = first ? a : b;
    IouBox& slope = first ? *of_a : *of_b;
    const IouBox of_volume = {0, 0, 0, box[4] * box[5], box[3] * box[5], box[3] * box[4], 0};
    for (size_t k = 0; k < slope.size(); ++k) {
      slope[k] = slope[k] / united - shared / united * ((of_volume[k] - slope[k]) / united);
    }
  }
  return shared / united;
}

}  // namespace polyop::reference

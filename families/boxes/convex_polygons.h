// Convex polygons of few corners, and the area that two of them share.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"
#include "families/boxes/rotated_boxes.h"

namespace polyop {

/// The corners of the hull of `count` points that come by rising x, of equal ones by rising y, in the sense from the x
/// axis to the y axis: the lower chain from left to right, then the upper one back (Andrew, 1979). turn(a, b, c) is
/// positive where the way through points a, b and c turns in that sense. `corners` has room for 2 * count; returns how
/// many there are.
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
    --length;  // the other side begins there
  }
  return length;
}

/// Corners in the sense from the x axis to the y axis.
struct ConvexPolygon {
  static constexpr int kMost = 9;
  static constexpr double kLeastArea = 1e-14;  // one of less overlaps nothing

  double x[kMost] = {}, y[kMost] = {};
  int size = 0;
  double area = 0;                   // 0: overlaps nothing
  double low[2] = {}, high[2] = {};  // the upright box around it, if it has an area

  /// The convex hull of the kPoints points of a row (x1, y1, …). If one is not finite it has area 0.
  template <int kPoints, class T>
  POLYOP_HD static ConvexPolygon HullOf(const T* row) {
    static_assert(kPoints <= kMost);
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
    int chain[2 * kMost];
    const int length = HullOfSorted(kPoints, [&](int a, int b, int c) { return points.Turn(a, b, c); }, chain);
    hull.size = std::min(length, kPoints);
    for (int i = 0; i < hull.size; ++i) {
      hull.x[i] = points.x[chain[i]];
      hull.y[i] = points.y[chain[i]];
    }
    hull.SetAreaAndBounds();
    return hull;
  }

  /// The upright box around it, of its area.
  POLYOP_HD RotatedBox Bounds() const {
    RotatedBox box;
    box.x = (low[0] + high[0]) / 2;
    box.y = (low[1] + high[1]) / 2;
    box.reach_x = box.half_width = (high[0] - low[0]) / 2;
    box.reach_y = box.half_height = (high[1] - low[1]) / 2;
    box.area = area;
    return box;
  }
  /// Whether the upright boxes around both share something.
  POLYOP_HD bool IsNear(const ConvexPolygon& other) const {
    return low[0] < other.high[0] && other.low[0] < high[0] && low[1] < other.high[1] && other.low[1] < high[1];
  }

 private:
  // Positive where the way from a through b to c turns from x to y.
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
    if (!(twice / 2 >= kLeastArea)) return;
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

/// The area that both cover: one is cut by the sides of the other (Sutherland and Hodgman, Reentrant Polygon Clipping,
/// 1974).
POLYOP_HD inline double SharedArea(const ConvexPolygon& a, const ConvexPolygon& b) {
  if (!(a.area > 0) || !(b.area > 0) || !a.IsNear(b)) return 0;
  constexpr int kMost = 2 * ConvexPolygon::kMost;
  double x[2][kMost], y[2][kMost];
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
      if ((before >= 0) != (here >= 0) && kept < kMost) {
        // From the end that is nearer to the side: the digits of a distant one are too few.
        const bool from_last = std::fabs(before) < std::fabs(here);
        const int near = from_last ? last : i, far = from_last ? i : last;
        const double part = from_last ? before / (before - here) : here / (here - before);
        to_x[kept] = from_x[near] + part * (from_x[far] - from_x[near]);
        to_y[kept++] = from_y[near] + part * (from_y[far] - from_y[near]);
      }
      if (here >= 0 && kept < kMost) {
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

/// The shared area over that of both together, or over the first one's.
POLYOP_HD inline double Share(const ConvexPolygon& a, const ConvexPolygon& b, bool of_first) {
  const double shared = SharedArea(a, b);
  return shared > 0 ? shared / (of_first ? a.area : a.area + b.area - shared) : 0;
}

/// Whether the IoU is greater than the threshold.
POLYOP_HD inline bool Overlap(const ConvexPolygon& a, const ConvexPolygon& b, float threshold) {
  const double shared = SharedArea(a, b);
  return shared > threshold * (a.area + b.area - shared);
}

}  // namespace polyop

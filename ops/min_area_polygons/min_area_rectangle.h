// The smallest rectangle around nine points, for CPU and GPU.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// Points as seen along a direction, and across it; both times the direction's length.
struct SeenAlong {
  static constexpr int kPoints = 9;

  double x, y;  // the direction, one of a rectangle's four: x > 0, y >= 0
  double low[2], high[2];

  POLYOP_HD static SeenAlong Make(const double* points, int from, int to) {
    SeenAlong seen{points[2 * to] - points[2 * from], points[2 * to + 1] - points[2 * from + 1], {}, {}};
    for (int turns = 0; turns < 4 && !(seen.x > 0 && seen.y >= 0); ++turns) {
      const double x = seen.x;
      seen.x = -seen.y;
      seen.y = x;
    }
    if (!(seen.x > 0)) {  // equal points: any direction will do
      seen.x = 1;
      seen.y = 0;
    }
    for (int p = 0; p < kPoints; ++p) {
      const double px = points[2 * p], py = points[2 * p + 1];
      const double at[2] = {seen.x * px + seen.y * py, seen.x * py - seen.y * px};
      for (int k = 0; k < 2; ++k) {
        seen.low[k] = p == 0 ? at[k] : std::min(seen.low[k], at[k]);
        seen.high[k] = p == 0 ? at[k] : std::max(seen.high[k], at[k]);
      }
    }
    return seen;
  }
  POLYOP_HD double Length2() const { return x * x + y * y; }
  POLYOP_HD double Area() const { return (high[0] - low[0]) * (high[1] - low[1]) / Length2(); }
  POLYOP_HD bool HasSmallerAngle(const SeenAlong& other) const { return y * other.x < other.y * x; }
};

/// A side of the smallest rectangle passes through two of the points, so the directions of all pairs are enough; other
/// pairs' rectangles are no smaller.
template <class T>
POLYOP_HD void MinAreaRectangle(const T* set, T* corners) {
  constexpr int kPoints = SeenAlong::kPoints;
  double points[2 * kPoints], origin[2];
  bool finite = true;
  for (int k = 0; k < 2 * kPoints; ++k) {
    points[k] = ToFloat(set[k]);
    finite = finite && std::fabs(points[k]) < INFINITY;
  }
  if (!finite) {
    for (int k = 0; k < 8; ++k) corners[k] = FromFloat<T>(NAN);
    return;
  }
  for (int k = 0; k < 2; ++k) origin[k] = points[k];
  for (int k = 0; k < 2 * kPoints; ++k) points[k] -= origin[k % 2];
  double areas[kPoints * (kPoints - 1) / 2], least = INFINITY;
  for (int i = 0, pair = 0; i < kPoints; ++i) {
    for (int j = i + 1; j < kPoints; ++j, ++pair) {
      areas[pair] = SeenAlong::Make(points, i, j).Area();
      least = std::min(least, areas[pair]);
    }
  }
  SeenAlong best{0, 1, {}, {}};
  for (int i = 0, pair = 0; i < kPoints; ++i) {
    for (int j = i + 1; j < kPoints; ++j, ++pair) {
      if (!(areas[pair] <= least * (1 + 1e-9))) continue;
      const SeenAlong seen = SeenAlong::Make(points, i, j);
      if (seen.HasSmallerAngle(best)) best = seen;
    }
  }
  const double along[4] = {best.high[0], best.low[0], best.low[0], best.high[0]};
  const double across[4] = {best.low[1], best.low[1], best.high[1], best.high[1]};
  for (int c = 0; c < 4; ++c) {
    const double x = (best.x * along[c] - best.y * across[c]) / best.Length2();
    const double y = (best.y * along[c] + best.x * across[c]) / best.Length2();
    corners[2 * c] = FromFloat<T>(static_cast<float>(x + origin[0]));
    corners[2 * c + 1] = FromFloat<T>(static_cast<float>(y + origin[1]));
  }
}

}  // namespace polyop

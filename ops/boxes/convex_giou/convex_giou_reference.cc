// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/boxes/convex_giou/convex_giou.h"

namespace polyop {
namespace {

// A dual number (Clifford, 1873): a value and its derivatives with respect to the 18 coordinates of a set.
struct Dual {
  double value = 0;
  std::array<double, 18> slope{};

  friend Dual Combine(const Dual& a, double of_a, const Dual& b, double of_b, double value) {
    Dual result{value, {}};
    for (size_t k = 0; k < result.slope.size(); ++k) result.slope[k] = of_a * a.slope[k] + of_b * b.slope[k];
    return result;
  }
  friend Dual operator+(const Dual& a, const Dual& b) { return Combine(a, 1, b, 1, a.value + b.value); }
  friend Dual operator-(const Dual& a, const Dual& b) { return Combine(a, 1, b, -1, a.value - b.value); }
  friend Dual operator*(const Dual& a, const Dual& b) { return Combine(a, b.value, b, a.value, a.value * b.value); }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const double ratio = a.value / b.value;
    return Combine(a, 1 / b.value, b, -ratio / b.value, ratio);
  }
};

struct DualPoint {
  Dual x, y;
};
using Polygon = std::vector<DualPoint>;

// Returns a positive number if c lies to the left of the line from a to b.
Dual Side(const DualPoint& a, const DualPoint& b, const DualPoint& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

Dual Area(const Polygon& corners) {
  Dual twice;
  for (size_t i = 2; i < corners.size(); ++i) twice = twice + Side(corners[0], corners[i - 1], corners[i]);
  return twice.value / 2 >= 1e-14 ? twice * Dual{0.5, {}} : Dual{};
}

// Returns true if all points lie to the left of the segment from a to b, or on it.
bool IsSide(const Polygon& points, const DualPoint& a, const DualPoint& b) {
  if (a.x.value == b.x.value && a.y.value == b.y.value) return false;
  return std::all_of(points.begin(), points.end(), [&](const DualPoint& p) {
    const double side = Side(a, b, p).value;
    const double x = (p.x.value - a.x.value) * (p.x.value - b.x.value);
    const double y = (p.y.value - a.y.value) * (p.y.value - b.y.value);
    return side > 0 || (side == 0 && x <= 0 && y <= 0);
  });
}

// Returns the corners of the convex hull in order. Of equal points, only the first is used.
Polygon HullOf(const Polygon& all) {
  Polygon points;
  for (const DualPoint& p : all) {
    const auto equal = [&](const DualPoint& q) { return q.x.value == p.x.value && q.y.value == p.y.value; };
    if (std::none_of(points.begin(), points.end(), equal)) points.push_back(p);
  }
  std::vector<size_t> next(points.size(), points.size());
  for (size_t a = 0; a < points.size(); ++a) {
    for (size_t b = 0; b < points.size(); ++b) {
      if (IsSide(points, points[a], points[b])) next[a] = b;
    }
  }
  Polygon hull;
  const auto corner = std::find_if(next.begin(), next.end(), [&](size_t b) { return b < points.size(); });
  for (size_t at = static_cast<size_t>(corner - next.begin()); at < points.size() && hull.size() < points.size();) {
    hull.push_back(points[at]);
    at = next[at];
    if (at == static_cast<size_t>(corner - next.begin())) break;
  }
  return hull;
}

// Clips a polygon to the left of the line from a to b.
Polygon Cut(const Polygon& polygon, const DualPoint& a, const DualPoint& b) {
  Polygon left;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const DualPoint &from = polygon[i], &to = polygon[(i + 1) % polygon.size()];
    const Dual before = Side(a, b, from), after = Side(a, b, to);
    if (before.value >= 0) left.push_back(from);
    if ((before.value >= 0) == (after.value >= 0)) continue;
    const Dual part = before / (before - after);
    left.push_back({from.x + part * (to.x - from.x), from.y + part * (to.y - from.y)});
  }
  return left;
}

Dual Giou(const Polygon& set, const Polygon& quadrilateral) {
  Polygon all = set;
  all.insert(all.end(), quadrilateral.begin(), quadrilateral.end());
  const Dual around = Area(HullOf(all));
  if (!(around.value > 0)) return {};
  const Polygon own = HullOf(set), other = HullOf(quadrilateral);
  const Dual own_area = Area(own), other_area = Area(other);
  Polygon both = own;
  for (size_t i = 0; i < other.size(); ++i) both = Cut(both, other[i], other[(i + 1) % other.size()]);
  Dual shared;
  for (size_t i = 2; i < both.size(); ++i) shared = shared + Side(both[0], both[i - 1], both[i]) * Dual{0.5, {}};
  if (!(own_area.value > 0) || !(other_area.value > 0) || both.empty()) shared = {};
  const Dual united = own_area + other_area - shared;
  return (united.value > 0 ? shared / united : Dual{}) - (around - united) / around;
}

Status ConvexGiouReference(const ConvexGiou&, const Context&, Tensor<const double, 2> pointsets,
                           Tensor<const double, 2> polygons, Tensor<double, 2> output) {
  for (int64_t i = 0; i < output.dim(0); ++i) {
    const double *const set = pointsets.data() + 18 * i, *const corners = polygons.data() + 8 * i;
    double* const row = output.data() + 19 * i;
    const auto finite = [](double v) { return std::isfinite(v); };
    if (!std::all_of(set, set + 18, finite) || !std::all_of(corners, corners + 8, finite)) {
      std::fill_n(row, 19, std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    Polygon points, quadrilateral;
    for (size_t p = 0; p < 9; ++p) {
      DualPoint point{{set[2 * p], {}}, {set[2 * p + 1], {}}};
      point.x.slope[2 * p] = point.y.slope[2 * p + 1] = 1;
      points.push_back(point);
    }
    for (size_t p = 0; p < 4; ++p) quadrilateral.push_back({{corners[2 * p], {}}, {corners[2 * p + 1], {}}});
    const Dual giou = Giou(points, quadrilateral);
    std::copy(giou.slope.begin(), giou.slope.end(), row);
    row[18] = giou.value;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(ConvexGiou, ConvexGiouReference);

}  // namespace
}  // namespace polyop

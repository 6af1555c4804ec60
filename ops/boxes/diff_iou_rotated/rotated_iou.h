// SPDX-License-Identifier: Apache-2.0
// The IoU of two rotated boxes and its gradient, for CPU and GPU.
//
// The intersection is bounded by parts of the sides of both boxes. Its area is a sum over these parts of their lengths
// times their distances from a point (the divergence theorem), and its derivative with respect to a box is the integral
// of the velocity with which the parts of that box's sides move outwards. So no polygon is stored or sorted.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// A box of two or three dimensions. One of two dimensions has a length of 1.
struct DiffIouBox {
  double x, y, z, width, height, length, angle;

  template <class T>
  POLYOP_HD static DiffIouBox Of(const T* row, int64_t dimensions) {
    const T* const sizes = row + dimensions;
    const bool solid = dimensions == 3;
    return {ToFloat(row[0]),           ToFloat(row[1]),   solid ? ToFloat(row[2]) : 0.0f,
            ToFloat(sizes[0]),         ToFloat(sizes[1]), solid ? ToFloat(sizes[2]) : 1.0f,
            ToFloat(sizes[dimensions])};
  }

  POLYOP_HD bool IsFinite() const {
    const double sum = std::fabs(x) + std::fabs(y) + std::fabs(z) + std::fabs(width) + std::fabs(height) +
                       std::fabs(length) + std::fabs(angle);
    return sum < INFINITY;
  }
  POLYOP_HD double Volume() const { return width * height * length; }
};

/// A row of partial derivatives with respect to a box, or of their parts.
struct DiffIouSlope {
  double x = 0, y = 0, z = 0, width = 0, height = 0, length = 0, angle = 0;

  template <class T>
  POLYOP_HD void Write(int64_t dimensions, T* row) const {
    const auto set = [&](int64_t i, double value) { row[i] = FromFloat<T>(static_cast<float>(value)); };
    set(0, x);
    set(1, y);
    set(dimensions, width);
    set(dimensions + 1, height);
    set(2 * dimensions, angle);
    if (dimensions < 3) return;
    set(2, z);
    set(5, length);
  }
};

/// The part of a side that bounds an intersection: its length, and the position of its middle along the side.
struct PartOfSide {
  double length = 0, middle = 0;

  /// Returns the part of [low, high] between a0 and a1 and between b0 and b1, which are in any order. Its length counts
  /// `weight` times.
  POLYOP_HD static PartOfSide Between(double low, double high, double a0, double a1, double b0, double b1,
                                      double weight) {
    const double begin = std::max(low, std::max(std::min(a0, a1), std::min(b0, b1)));
    const double end = std::min(high, std::min(std::max(a0, a1), std::max(b0, b1)));
    if (!(end > begin)) return {};
    return {(end - begin) * weight, (begin + end) / 2};
  }
};

/// The area of the intersection of two rotated rectangles, and its derivatives.
struct DiffIntersection {
  double area = 0;
  DiffIouSlope of_a, of_b;

  POLYOP_HD DiffIntersection(const DiffIouBox& a, const DiffIouBox& b) {
    const double half_width = std::fabs(a.width) / 2, half_height = std::fabs(a.height) / 2;
    double w = std::fabs(b.width) / 2, h = std::fabs(b.height) / 2;
    const double dx = b.x - a.x, dy = b.y - a.y, reach = half_width + half_height + w + h;
    if (dx * dx + dy * dy > reach * reach || !(half_width * half_height > 0) || !(w * h > 0)) return;

    // The frame of a's axes has its origin at the centre of b. b has the sides p = -w, w and q = -h, h in a frame that
    // is rotated by an angle of at most 45 degrees: b may exchange width and height, and is symmetric.
    const double cosine = std::cos(a.angle), sine = std::sin(a.angle);
    double c = std::cos(b.angle - a.angle), s = std::sin(b.angle - a.angle);
    const bool exchanged = std::fabs(s) > std::fabs(c);
    if (exchanged) {
      const double old_c = c, old_w = w;
      c = s;
      s = -old_c;
      w = h;
      h = old_w;
    }
    if (c < 0) {
      c = -c;
      s = -s;
    }
    const double at_u = dx * cosine + dy * sine, at_v = dy * cosine - dx * sine;
    const double right = half_width - at_u, left = -half_width - at_u;
    const double top = half_height - at_v, bottom = -half_height - at_v;

    // Sides that are almost parallel intersect at a position that is almost arbitrary. To be consistent, both boxes use
    // the same quotient. If they are parallel, a side counts that is inside of the twin, and half if both coincide.
    const bool parallel = !(std::fabs(s) > 1e-300);
    const double by_s = parallel ? 0 : 1 / s, by_c = 1 / c, t = s / (1 + c);
    const auto weight = [&](double side, double twin, double opposite) {
      if (!parallel) return 1.0;
      return side > opposite && side <= twin ? (side == twin ? 0.5 : 1.0) : 0.0;
    };
    const auto twins = [&](double quotient, double shift, double if_parallel) {
      return parallel ? if_parallel : quotient * by_s + shift;
    };
    const auto side_u = [&](double u, double own_weight) {
      return PartOfSide::Between(bottom, top, twins(w - u, u * t, INFINITY), twins(-w - u, u * t, -INFINITY),
                                 (h + u * s) * by_c, (u * s - h) * by_c, own_weight);
    };
    const auto side_v = [&](double v, double own_weight) {
      return PartOfSide::Between(left, right, twins(v - h, -v * t, INFINITY), twins(v + h, -v * t, -INFINITY),
                                 (w - v * s) * by_c, (-w - v * s) * by_c, own_weight);
    };
    const auto side_p = [&](double p, double own_weight) {
      return PartOfSide::Between(-h, h, twins(p - right, -p * t, INFINITY), twins(p - left, -p * t, -INFINITY),
                                 (top - p * s) * by_c, (bottom - p * s) * by_c, own_weight);
    };
    const auto side_q = [&](double q, double own_weight) {
      return PartOfSide::Between(-w, w, twins(top - q, q * t, INFINITY), twins(bottom - q, q * t, -INFINITY),
                                 (right + q * s) * by_c, (left + q * s) * by_c, own_weight);
    };
    const PartOfSide u1 = side_u(right, weight(right, w, -w)), u0 = side_u(left, weight(-left, w, -w));
    const PartOfSide v1 = side_v(top, weight(top, h, -h)), v0 = side_v(bottom, weight(-bottom, h, -h));
    const PartOfSide p1 = side_p(w, weight(w, right, left)), p0 = side_p(-w, weight(w, -left, -right));
    const PartOfSide q1 = side_q(h, weight(h, top, bottom)), q0 = side_q(-h, weight(h, -bottom, -top));

    const double twice = right * u1.length - left * u0.length + top * v1.length - bottom * v0.length +
                         w * (p1.length + p0.length) + h * (q1.length + q0.length);
    area = std::max(twice / 2, 0.0);

    const double along_u = u1.length - u0.length, along_v = v1.length - v0.length;
    of_a.x = along_u * cosine - along_v * sine;
    of_a.y = along_u * sine + along_v * cosine;
    of_b.x = -of_a.x;
    of_b.y = -of_a.y;
    of_a.angle = (v1.middle + at_u) * v1.length - (v0.middle + at_u) * v0.length - (u1.middle + at_v) * u1.length +
                 (u0.middle + at_v) * u0.length;
    of_b.angle = q1.middle * q1.length - q0.middle * q0.length - p1.middle * p1.length + p0.middle * p0.length;
    const auto of_size = [](double size, double length) { return size > 0 ? length / 2 : size < 0 ? -length / 2 : 0; };
    of_a.width = of_size(a.width, u1.length + u0.length);
    of_a.height = of_size(a.height, v1.length + v0.length);
    const double of_p = p1.length + p0.length, of_q = q1.length + q0.length;
    of_b.width = of_size(b.width, exchanged ? of_q : of_p);
    of_b.height = of_size(b.height, exchanged ? of_p : of_q);
  }
};

/// The overlap of two boxes along z, and its derivatives. As in PyTorch, the minimum of equal numbers has half of the
/// derivative with respect to each, and an overlap of 0 has the derivative of a positive one.
struct OverlapAlongZ {
  double overlap = 0;
  double upper_of_a = 0, lower_of_a = 0;  // the share of the first box in the upper and the lower end

  POLYOP_HD OverlapAlongZ(const DiffIouBox& a, const DiffIouBox& b) {
    const double upper_a = a.z + a.length / 2, upper_b = b.z + b.length / 2;
    const double lower_a = a.z - a.length / 2, lower_b = b.z - b.length / 2;
    overlap = std::min(upper_a, upper_b) - std::max(lower_a, lower_b);
    upper_of_a = upper_a == upper_b ? 0.5 : upper_a < upper_b ? 1 : 0;
    lower_of_a = lower_a == lower_b ? 0.5 : lower_a > lower_b ? 1 : 0;
  }
};

/// Returns the IoU. Not finite numbers give NaN.
POLYOP_HD inline double DiffIou(const DiffIouBox& a, const DiffIouBox& b) {
  if (!a.IsFinite() || !b.IsFinite()) return NAN;
  const double shared = DiffIntersection(a, b).area * std::max(OverlapAlongZ(a, b).overlap, 0.0);
  return shared / (a.Volume() + b.Volume() - shared);
}

/// Sets the derivatives of the IoU times `grad`.
POLYOP_HD inline void DiffIouGradient(const DiffIouBox& a, const DiffIouBox& b, double grad, DiffIouSlope* of_a,
                                      DiffIouSlope* of_b) {
  if (!a.IsFinite() || !b.IsFinite()) {
    *of_a = *of_b = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    return;
  }
  const DiffIntersection flat(a, b);
  const OverlapAlongZ along_z(a, b);
  const double overlap = std::max(along_z.overlap, 0.0), shared = flat.area * overlap;
  const double united = a.Volume() + b.Volume() - shared, iou = shared / united;
  const double by_shared = grad * (1 + iou) / united, by_volume = -grad * iou / united;
  const double by_area = by_shared * overlap, by_overlap = by_shared * (along_z.overlap >= 0 ? flat.area : 0);
  const auto set = [&](const DiffIouBox& box, const DiffIouSlope& slope, double upper, double lower, DiffIouSlope* to) {
    to->x = by_area * slope.x;
    to->y = by_area * slope.y;
    to->z = by_overlap * (upper - lower);
    to->width = by_area * slope.width + by_volume * (box.height * box.length);
    to->height = by_area * slope.height + by_volume * (box.width * box.length);
    to->length = by_overlap * (upper + lower) / 2 + by_volume * (box.width * box.height);
    to->angle = by_area * slope.angle;
  };
  set(a, flat.of_a, along_z.upper_of_a, along_z.lower_of_a, of_a);
  set(b, flat.of_b, 1 - along_z.upper_of_a, 1 - along_z.lower_of_a, of_b);
}

}  // namespace polyop

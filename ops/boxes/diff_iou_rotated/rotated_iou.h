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

/// Two rectangles in the frame of a's axes u and v, whose origin is the centre of b. b's own axes p and q are rotated
/// by at most 45 degrees from u and v: b may exchange width and height, and is symmetric.
struct DiffIouFrame {
  double half_width, half_height;   // of a
  double w, h;                      // b's sides are p = -w, w and q = -h, h
  double cosine, sine;              // of a's angle
  double c, s;                      // of the angle from u to p; c > 0
  bool exchanged;                   // w is half of b's height
  double at_u, at_v;                // the centre of b relative to that of a
  double right, left, top, bottom;  // a's sides are u = left, right and v = bottom, top

  POLYOP_HD DiffIouFrame(const DiffIouBox& a, const DiffIouBox& b)
      : half_width(std::fabs(a.width) / 2),
        half_height(std::fabs(a.height) / 2),
        w(std::fabs(b.width) / 2),
        h(std::fabs(b.height) / 2),
        cosine(std::cos(a.angle)),
        sine(std::sin(a.angle)),
        c(std::cos(b.angle - a.angle)),
        s(std::sin(b.angle - a.angle)),
        exchanged(std::fabs(s) > std::fabs(c)) {
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
    const double dx = b.x - a.x, dy = b.y - a.y;
    at_u = dx * cosine + dy * sine;
    at_v = dy * cosine - dx * sine;
    right = half_width - at_u;
    left = -half_width - at_u;
    top = half_height - at_v;
    bottom = -half_height - at_v;
  }
};

/// The parts of the sides of two rectangles that bound their intersection.
struct DiffIouSides {
  PartOfSide u1, u0, v1, v0;  // of a's sides at right, left, top, bottom
  PartOfSide p1, p0, q1, q0;  // of b's sides at w, -w, h, -h

  POLYOP_HD explicit DiffIouSides(const DiffIouFrame& f) {
    const Crossings crossings(f);
    u1 = crossings.SideU(f.right, crossings.Weight(f.right, f.w, -f.w));
    u0 = crossings.SideU(f.left, crossings.Weight(-f.left, f.w, -f.w));
    v1 = crossings.SideV(f.top, crossings.Weight(f.top, f.h, -f.h));
    v0 = crossings.SideV(f.bottom, crossings.Weight(-f.bottom, f.h, -f.h));
    p1 = crossings.SideP(f.w, crossings.Weight(f.w, f.right, f.left));
    p0 = crossings.SideP(-f.w, crossings.Weight(f.w, -f.left, -f.right));
    q1 = crossings.SideQ(f.h, crossings.Weight(f.h, f.top, f.bottom));
    q0 = crossings.SideQ(-f.h, crossings.Weight(f.h, -f.bottom, -f.top));
  }

 private:
  // Where sides meet those of the other rectangle. The two of these that are almost parallel to a side are its twins.
  struct Crossings {
    const DiffIouFrame& f;
    bool parallel;
    double by_s, by_c;
    double t;  // the tangent of half of the angle

    POLYOP_HD explicit Crossings(const DiffIouFrame& frame)
        : f(frame),
          parallel(!(std::fabs(f.s) > 1e-300)),
          by_s(parallel ? 0 : 1 / f.s),
          by_c(1 / f.c),
          t(f.s / (1 + f.c)) {}

    // Returns how much a side counts. If the rectangles are parallel, a side counts that is inside of the twin, and
    // half if both coincide.
    POLYOP_HD double Weight(double side, double twin, double opposite) const {
      if (!parallel) return 1.0;
      return side > opposite && side <= twin ? (side == twin ? 0.5 : 1.0) : 0.0;
    }
    // Returns where a side meets a twin. Sides that are almost parallel intersect at a position that is almost
    // arbitrary. To be consistent, both rectangles use the same quotient.
    POLYOP_HD double Twin(double quotient, double shift, double if_parallel) const {
      return parallel ? if_parallel : quotient * by_s + shift;
    }

    // Each returns the part of a side between its ends, between its twins, and between the two other sides.
    POLYOP_HD PartOfSide SideU(double u, double weight) const {
      return PartOfSide::Between(f.bottom, f.top, Twin(f.w - u, u * t, INFINITY), Twin(-f.w - u, u * t, -INFINITY),
                                 (f.h + u * f.s) * by_c, (u * f.s - f.h) * by_c, weight);
    }
    POLYOP_HD PartOfSide SideV(double v, double weight) const {
      return PartOfSide::Between(f.left, f.right, Twin(v - f.h, -v * t, INFINITY), Twin(v + f.h, -v * t, -INFINITY),
                                 (f.w - v * f.s) * by_c, (-f.w - v * f.s) * by_c, weight);
    }
    POLYOP_HD PartOfSide SideP(double p, double weight) const {
      return PartOfSide::Between(-f.h, f.h, Twin(p - f.right, -p * t, INFINITY), Twin(p - f.left, -p * t, -INFINITY),
                                 (f.top - p * f.s) * by_c, (f.bottom - p * f.s) * by_c, weight);
    }
    POLYOP_HD PartOfSide SideQ(double q, double weight) const {
      return PartOfSide::Between(-f.w, f.w, Twin(f.top - q, q * t, INFINITY), Twin(f.bottom - q, q * t, -INFINITY),
                                 (f.right + q * f.s) * by_c, (f.left + q * f.s) * by_c, weight);
    }
  };
};

/// The area of the intersection of two rotated rectangles, and its derivatives.
struct DiffIntersection {
  double area = 0;
  DiffIouSlope of_a, of_b;

  POLYOP_HD DiffIntersection(const DiffIouBox& a, const DiffIouBox& b) {
    if (!MayIntersect(a, b)) return;
    const DiffIouFrame frame(a, b);
    const DiffIouSides sides(frame);
    SetArea(frame, sides);
    SetSlopes(a, b, frame, sides);
  }

 private:
  // Returns false if the rectangles are too far apart to meet, or if one has no area.
  POLYOP_HD static bool MayIntersect(const DiffIouBox& a, const DiffIouBox& b) {
    const double half_width = std::fabs(a.width) / 2, half_height = std::fabs(a.height) / 2;
    const double w = std::fabs(b.width) / 2, h = std::fabs(b.height) / 2;
    const double dx = b.x - a.x, dy = b.y - a.y, reach = half_width + half_height + w + h;
    return !(dx * dx + dy * dy > reach * reach) && half_width * half_height > 0 && w * h > 0;
  }

  POLYOP_HD void SetArea(const DiffIouFrame& f, const DiffIouSides& sides) {
    const double twice = f.right * sides.u1.length - f.left * sides.u0.length + f.top * sides.v1.length -
                         f.bottom * sides.v0.length + f.w * (sides.p1.length + sides.p0.length) +
                         f.h * (sides.q1.length + sides.q0.length);
    area = std::max(twice / 2, 0.0);
  }

  POLYOP_HD void SetSlopes(const DiffIouBox& a, const DiffIouBox& b, const DiffIouFrame& f, const DiffIouSides& sides) {
    const auto& [u1, u0, v1, v0, p1, p0, q1, q0] = sides;
    const double along_u = u1.length - u0.length, along_v = v1.length - v0.length;
    of_a.x = along_u * f.cosine - along_v * f.sine;
    of_a.y = along_u * f.sine + along_v * f.cosine;
    of_b.x = -of_a.x;
    of_b.y = -of_a.y;
    of_a.angle = (v1.middle + f.at_u) * v1.length - (v0.middle + f.at_u) * v0.length -
                 (u1.middle + f.at_v) * u1.length + (u0.middle + f.at_v) * u0.length;
    of_b.angle = q1.middle * q1.length - q0.middle * q0.length - p1.middle * p1.length + p0.middle * p0.length;
    const auto of_size = [](double size, double length) { return size > 0 ? length / 2 : size < 0 ? -length / 2 : 0; };
    of_a.width = of_size(a.width, u1.length + u0.length);
    of_a.height = of_size(a.height, v1.length + v0.length);
    const double of_p = p1.length + p0.length, of_q = q1.length + q0.length;
    of_b.width = of_size(b.width, f.exchanged ? of_q : of_p);
    of_b.height = of_size(b.height, f.exchanged ? of_p : of_q);
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

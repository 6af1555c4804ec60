// SPDX-License-Identifier: Apache-2.0
// 3-D boxes (x, y, z, dx, dy, dz, heading), rotated by `heading` radians around z.
#pragma once

#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"
#include "ops/boxes/rotated_boxes.h"

namespace polyop {

/// The box in bird's eye view (BEV). Its area is 0, so that it overlaps nothing, if one of its numbers is NaN or
/// infinite or if dx or dy is not positive. Ignores z and dz; ignores the heading unless `rotated`.
template <class T>
POLYOP_HD RotatedBox BevBox(const T* box, bool rotated = true) {
  const float row[5] = {ToFloat(box[0]), ToFloat(box[1]), ToFloat(box[3]), ToFloat(box[4]),
                        rotated ? ToFloat(box[6]) : 0.0f};
  RotatedBox bev = RotatedBox::Of(row);
  bool is_box = row[2] > 0 && row[3] > 0;
  for (const float number : row) is_box = is_box && std::fabs(number) < INFINITY;
  if (!is_box) bev.area = 0;
  return bev;
}

/// A 3-D box in double. Operators differ in what z means in a row: use the factory of their convention.
struct Box3d {
  RotatedBox bev;            // its half extents keep the signs of dx and dy
  double z = 0, half_z = 0;  // the centre and half of dz
  double volume = 0;         // 0 if the box overlaps nothing

  /// z is that of the bottom: the operators that find points in boxes.
  template <class T>
  POLYOP_HD static Box3d OfBottom(const T* box) {
    Box3d result = OfCentre(box);
    result.z += result.half_z;
    return result;
  }

  /// z is that of the centre: the operators that compare boxes.
  template <class T>
  POLYOP_HD static Box3d OfCentre(const T* box) {
    const float z = ToFloat(box[2]), dz = ToFloat(box[5]);
    const bool has_height = std::fabs(z) < INFINITY && dz > 0 && dz < INFINITY;
    Box3d result{BevBox(box), z, static_cast<double>(dz) / 2, 0};
    result.bev.half_width = static_cast<double>(ToFloat(box[3])) / 2;
    result.bev.half_height = static_cast<double>(ToFloat(box[4])) / 2;
    result.volume = has_height ? result.bev.area * dz : 0;
    return result;
  }

  /// Coordinates of a point relative to the centre, along the box's own axes.
  POLYOP_HD double Along(double px, double py) const { return (px - bev.x) * bev.cosine + (py - bev.y) * bev.sine; }
  POLYOP_HD double Across(double px, double py) const { return (py - bev.y) * bev.cosine - (px - bev.x) * bev.sine; }

  /// Returns whether the point (x, y, z) is inside. Top and bottom belong to the box, its sides do not. False if the
  /// point or the box has a NaN, or if an extent is negative.
  template <class T>
  POLYOP_HD bool Holds(const T* point) const {
    const double px = static_cast<double>(ToFloat(point[0])), py = static_cast<double>(ToFloat(point[1]));
    const double pz = static_cast<double>(ToFloat(point[2]));
    return std::fabs(pz - z) <= half_z && std::fabs(Along(px, py)) < bev.half_width &&
           std::fabs(Across(px, py)) < bev.half_height;
  }
};

/// The sentences about boxes in the documentation of operators that find points in boxes.
#define POLYOP_BOX3D_SEMANTICS                                                                                        \
  "A box is (x, y, z, dx, dy, dz, rz), (x, y, z) the centre of its bottom. A point is inside if it is neither below " \
  "the bottom nor above the top and, along the box's own axes, which are rotated by rz around z, less than dx / 2 "   \
  "and dy / 2 from its centre; that is decided in fp64. A point or a box with NaN in it is outside and empty. "

}  // namespace polyop

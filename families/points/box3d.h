// Turned boxes of point clouds: (x, y, z, dx, dy, dz, rz), z that of the bottom.
#pragma once

#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// What the tests of a box need, in double whatever its type is.
struct Box3d {
  double x, y, z;  // its middle
  double half_x, half_y, half_z;
  double cosine, sine;

  template <class T>
  POLYOP_HD static Box3d Of(const T* box) {
    const double half_z = static_cast<double>(ToFloat(box[5])) / 2, angle = static_cast<double>(ToFloat(box[6]));
    return {static_cast<double>(ToFloat(box[0])),
            static_cast<double>(ToFloat(box[1])),
            static_cast<double>(ToFloat(box[2])) + half_z,
            static_cast<double>(ToFloat(box[3])) / 2,
            static_cast<double>(ToFloat(box[4])) / 2,
            half_z,
            std::cos(angle),
            std::sin(angle)};
  }

  /// A point's place along the box's own axes, from its middle.
  POLYOP_HD double Along(double px, double py) const { return (px - x) * cosine + (py - y) * sine; }
  POLYOP_HD double Across(double px, double py) const { return (py - y) * cosine - (px - x) * sine; }

  /// The lid and the bottom belong to the box, its sides do not. NaN is in no box.
  template <class T>
  POLYOP_HD bool Holds(const T* point) const {
    const double px = static_cast<double>(ToFloat(point[0])), py = static_cast<double>(ToFloat(point[1]));
    const double pz = static_cast<double>(ToFloat(point[2]));
    return std::fabs(pz - z) <= half_z && std::fabs(Along(px, py)) < half_x && std::fabs(Across(px, py)) < half_y;
  }
};

/// The documentation's words for it.
#define POLYOP_BOX3D_SEMANTICS                                                                                         \
  "A box is (x, y, z, dx, dy, dz, rz), (x, y, z) the middle of its bottom. A point is inside if it is neither below "  \
  "the bottom nor above the lid and, along the box's own axes, which are turned by rz around z, less than dx / 2 and " \
  "dy / 2 from its middle; that is decided in fp64. A point or a box with NaN in it is outside and empty. "

}  // namespace polyop

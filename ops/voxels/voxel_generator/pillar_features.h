// SPDX-License-Identifier: Apache-2.0
// The features of the points of a pillar, for CPU and GPU.
#pragma once

#include "core/host_device.h"
#include "ops/voxels/cell_grid.h"

namespace polyop {

/// The reference positions that the points of a pillar are compared with.
struct Pillar {
  float mean[3], centre[3];
  int32_t cell[3];  // x, y, z

  /// `point_of(k)` returns the row of point number k of the pillar. Requires: points >= 1.
  template <class PointOf>
  POLYOP_HD static Pillar Of(const CellGrid& grid, float z_size, int64_t points, const PointOf& point_of) {
    Pillar pillar{};
    for (int64_t k = 0; k < points; ++k) {
      const auto* const p = point_of(k);
      for (int a = 0; a < 3; ++a) pillar.mean[a] += ToFloat(p[a]);
    }
    for (int a = 0; a < 3; ++a) pillar.mean[a] /= static_cast<float>(points);
    const auto* const first = point_of(0);
    grid.Find(ToFloat(first[0]), ToFloat(first[1]), ToFloat(first[2]), pillar.cell);
    for (int a = 0; a < 2; ++a) {
      pillar.centre[a] = static_cast<float>(pillar.cell[a]) * grid.size[a] + grid.size[a] / 2 + grid.low[a];
    }
    pillar.centre[2] = z_size / 2 + grid.low[2];
    return pillar;
  }

  /// Writes the `features` features of a point of `components` components.
  template <class T>
  POLYOP_HD void Describe(const T* point, int64_t components, int64_t features, T* to) const {
    for (int64_t c = 0; c < components; ++c) to[c] = point[c];
    for (int a = 0; a < 3; ++a) to[components + a] = FromFloat<T>(ToFloat(point[a]) - mean[a]);
    for (int64_t a = 0; components + 3 + a < features; ++a) {
      to[components + 3 + a] = FromFloat<T>(ToFloat(point[a]) - centre[a]);
    }
  }
};

}  // namespace polyop

// The features of a pillar's points: on CPU and GPU.
#pragma once

#include "core/host_device.h"
#include "families/voxels/cell_grid.h"

namespace polyop {

/// What a pillar's points are compared with.
struct Pillar {
  float mean[3], centre[3];
  int32_t cell[3];  // x, y, z

  /// point_of(k): the row of the pillar's point number k; there is one at least.
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

  /// Writes the features of a point of `numbers` numbers.
  template <class T>
  POLYOP_HD void Describe(const T* point, int64_t numbers, int64_t features, T* to) const {
    for (int64_t c = 0; c < numbers; ++c) to[c] = point[c];
    for (int a = 0; a < 3; ++a) to[numbers + a] = FromFloat<T>(ToFloat(point[a]) - mean[a]);
    for (int64_t a = 0; numbers + 3 + a < features; ++a) {
      to[numbers + 3 + a] = FromFloat<T>(ToFloat(point[a]) - centre[a]);
    }
  }
};

}  // namespace polyop

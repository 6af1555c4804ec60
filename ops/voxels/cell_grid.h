// SPDX-License-Identifier: Apache-2.0
// The regular grid of voxelization, on CPU and GPU.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/host_device.h"
#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// The cell of a point outside of the grid.
inline constexpr int32_t kNoCell = -1;

/// A box that is divided into cells. Axes are in the order of a point's coordinates: x, y, z. All arithmetic is in
/// fp32, because the rounding of a quotient decides the cell.
struct CellGrid {
  float low[3], size[3];
  float from[3], to[3];  // coordinates outside of [from, to) have no cell
  int32_t cells[3];

  /// Computes the cell of a point along each axis. Returns false if the point is outside, NaN or infinite.
  POLYOP_HD bool Find(float x, float y, float z, int32_t at[3]) const {
    const float point[3] = {x, y, z};
    for (int a = 0; a < 3; ++a) {
      const float cell = std::floor((point[a] - low[a]) / size[a]);
      if (!(point[a] >= from[a] && point[a] < to[a] && cell >= 0 && cell < static_cast<float>(cells[a]))) return false;
      at[a] = static_cast<int32_t>(cell);
    }
    return true;
  }
  /// Returns the flat index of a cell; x varies fastest.
  POLYOP_HD int32_t NumberOf(const int32_t at[3]) const { return (at[2] * cells[1] + at[1]) * cells[0] + at[0]; }
  /// Returns the flat index of a point's cell, or kNoCell.
  template <class T>
  POLYOP_HD int32_t CellOf(const T* point) const {
    int32_t at[3];
    return Find(ToFloat(point[0]), ToFloat(point[1]), ToFloat(point[2]), at) ? NumberOf(at) : kNoCell;
  }
  POLYOP_HD int64_t total() const { return int64_t{cells[0]} * cells[1] * cells[2]; }
};

/// How the number of cells of an axis is rounded if it is halfway between integers.
enum class HalfCells { kAwayFromZero, kToEven };

/// Creates the grid of the attributes voxel_size and point_cloud_range. Returns an error if they are invalid.
inline Status MakeCellGrid(const std::array<float, 3>& voxel_size, const std::array<float, 6>& range, HalfCells halves,
                           CellGrid* grid) {
  int64_t total = 1;
  for (int a = 0; a < 3; ++a) {
    const auto i = static_cast<size_t>(a);
    const float size = voxel_size[i], low = range[i], high = range[i + 3];
    if (!(size > 0)) return InvalidArgument("attribute 'voxel_size'[", a, "]: expected a positive number, got ", size);
    if (!(high > low)) {
      return InvalidArgument("attribute 'point_cloud_range'[", a + 3, "]: expected more than the minimum ", low,
                             ", got ", high);
    }
    const float cells = (high - low) / size;
    const float rounded = halves == HalfCells::kToEven ? std::nearbyint(cells) : std::round(cells);
    if (!(rounded < 0x1p31f) || (total *= static_cast<int64_t>(rounded)) > INT32_MAX) {
      return InvalidArgument("attribute 'voxel_size'[", a, "]: expected fewer than 2^31 cells from ", low, " to ", high,
                             ", got size ", size);
    }
    grid->low[a] = low;
    grid->size[a] = size;
    grid->from[a] = -std::numeric_limits<float>::infinity();
    grid->to[a] = std::numeric_limits<float>::infinity();
    grid->cells[a] = static_cast<int32_t>(rounded);
  }
  return Status::Ok();
}

/// Checks that points have at least three coordinates and that an i32 can index them.
inline Status CheckVoxelPoints(const AnyTensor& points) {
  const Shape& shape = points.shape;
  const int last = shape.rank() - 1;
  if (shape[last] < 3) {
    return InvalidArgument("'points': expected at least 3 coordinates in dimension ", last, ", got ", shape[last],
                           " (shape ", ToString(shape), ")");
  }
  if (shape.NumElements().value_or(0) / shape[last] > INT32_MAX) {
    return InvalidArgument("'points': expected at most 2147483647 points, got shape ", ToString(shape));
  }
  return Status::Ok();
}

}  // namespace polyop

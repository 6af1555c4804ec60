// The regular grid of cells that voxelization puts points into: on CPU and GPU.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/host_device.h"
#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// What a point outside of the grid has in the place of a cell.
inline constexpr int32_t kNoCell = -1;

/// Cells of a box of space. Every axis is that of a point's coordinate: x, y, z. All arithmetic is in fp32: whether a
/// quotient rounds up to a whole number decides the cell.
struct CellGrid {
  float low[3], size[3];
  float from[3], to[3];  // coordinates outside of [from, to) have no cell
  int32_t cells[3];

  /// The cell of a point along each axis. False if it has none: it lies outside, or has NaN or infinity in it.
  POLYOP_HD bool Find(float x, float y, float z, int32_t at[3]) const {
    const float point[3] = {x, y, z};
    for (int a = 0; a < 3; ++a) {
      const float cell = std::floor((point[a] - low[a]) / size[a]);
      if (!(point[a] >= from[a] && point[a] < to[a] && cell >= 0 && cell < static_cast<float>(cells[a]))) return false;
      at[a] = static_cast<int32_t>(cell);
    }
    return true;
  }
  /// The number of a cell; x varies fastest.
  POLYOP_HD int32_t NumberOf(const int32_t at[3]) const { return (at[2] * cells[1] + at[1]) * cells[0] + at[0]; }
  /// The number of a point's cell, or kNoCell.
  template <class T>
  POLYOP_HD int32_t CellOf(const T* point) const {
    int32_t at[3];
    return Find(ToFloat(point[0]), ToFloat(point[1]), ToFloat(point[2]), at) ? NumberOf(at) : kNoCell;
  }
  POLYOP_HD int64_t total() const { return int64_t{cells[0]} * cells[1] * cells[2]; }
};

/// How the cells of an axis that a whole number of them does not fill are counted.
enum class HalfCells { kAwayFromZero, kToEven };

/// The grid of the attributes voxel_size and point_cloud_range, or what is wrong with them.
inline Status MakeCellGrid(const std::array<float, 3>& voxel_size, const std::array<float, 6>& range, HalfCells halves,
                           CellGrid* grid) {
  int64_t total = 1;
  for (int a = 0; a < 3; ++a) {
    const auto i = static_cast<size_t>(a);
    const float size = voxel_size[i], low = range[i], high = range[i + 3];
    if (!(size > 0)) return InvalidArgument("attribute 'voxel_size'[", a, "] is ", size, ", wanted a positive number");
    if (!(high > low)) {
      return InvalidArgument("attribute 'point_cloud_range'[", a + 3, "] is ", high, ", wanted more than ", low,
                             ", the least coordinate");
    }
    const float cells = (high - low) / size;
    const float rounded = halves == HalfCells::kToEven ? std::nearbyint(cells) : std::round(cells);
    if (!(rounded < 0x1p31f) || (total *= static_cast<int64_t>(rounded)) > INT32_MAX) {
      return InvalidArgument("attribute 'voxel_size'[", a, "] is ", size, ": from ", low, " to ", high,
                             " the number of cells does not fit in 31 bits");
    }
    grid->low[a] = low;
    grid->size[a] = size;
    grid->from[a] = -std::numeric_limits<float>::infinity();
    grid->to[a] = std::numeric_limits<float>::infinity();
    grid->cells[a] = static_cast<int32_t>(rounded);
  }
  return Status::Ok();
}

/// Points have three coordinates at least, and a call's points are numbered by an i32.
inline Status CheckVoxelPoints(const AnyTensor& points) {
  const Shape& shape = points.shape;
  const int last = shape.rank() - 1;
  if (shape[last] < 3) {
    return InvalidArgument("'points' has shape ", ToString(shape), ", wanted 3 coordinates or more in dimension ",
                           last);
  }
  if (shape.NumElements().value_or(0) / shape[last] > INT32_MAX) {
    return InvalidArgument("'points' has shape ", ToString(shape), ", wanted at most 2147483647 points");
  }
  return Status::Ok();
}

}  // namespace polyop

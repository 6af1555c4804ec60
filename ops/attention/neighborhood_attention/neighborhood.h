// SPDX-License-Identifier: Apache-2.0
// The windows of neighborhood attention, shared by the kernels. The reference does not use it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/attributes.h"
#include "core/host_device.h"
#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// The positions of a window along one axis.
struct NeighborRange {
  int64_t first = 0, step = 1, count = 1;

  /// Requires: the position is one of them.
  POLYOP_HD int64_t IndexOf(int64_t position) const { return step == 1 ? position - first : (position - first) / step; }
};

struct NeighborAxis {
  int64_t extent = 1, kernel = 1, dilation = 1;
  bool causal = false;

  /// Returns the number of positions that differ from position `group` < dilation by multiples of the dilation.
  POLYOP_HD int64_t PositionsOf(int64_t group) const {
    return dilation == 1 ? extent : (extent - group + dilation - 1) / dilation;
  }
  /// Requires: kernel * dilation <= extent.
  POLYOP_HD NeighborRange At(int64_t position) const {
    const int64_t i = dilation == 1 ? position : position / dilation, group = position - i * dilation;
    int64_t start = i - kernel + 1, count = kernel;
    if (causal) {
      start = start < 0 ? 0 : start;
      count = i - start + 1;
    } else {
      const int64_t last = PositionsOf(group) - kernel;
      start = i - kernel / 2;
      start = start < 0 ? 0 : start > last ? last : start;
    }
    return {start * dilation + group, dilation, count};
  }

  /// Returns the positions whose windows contain a position. Requires: kernel * dilation <= extent.
  POLYOP_HD NeighborRange Around(int64_t position) const {
    const int64_t i = dilation == 1 ? position : position / dilation, group = position - i * dilation;
    const int64_t positions = PositionsOf(group);
    int64_t first = i, last = i + kernel - 1;
    if (!causal) {  // windows at the ends are moved inside
      first = i < kernel ? 0 : i - kernel + kernel / 2 + 1;
      last = i >= positions - kernel ? positions - 1 : i + kernel / 2;
    }
    last = last < positions ? last : positions - 1;
    return {first * dilation + group, dilation, last - first + 1};
  }
};

/// The positions of a window, or the positions whose windows contain a position.
struct NeighborWindow {
  NeighborRange plane, row, column;
  int64_t rows = 1, columns = 1;  // extents of the last two axes

  POLYOP_HD int64_t count() const { return plane.count * row.count * column.count; }
  /// Sets the position along each axis of the window's position `number`.
  POLYOP_HD void AxesOf(uint32_t number, int64_t (&axes)[3]) const {
    const auto row_count = static_cast<uint32_t>(row.count), column_count = static_cast<uint32_t>(column.count);
    const uint32_t line = number / column_count;
    axes[0] = plane.first + line / row_count * plane.step;
    axes[1] = row.first + line % row_count * row.step;
    axes[2] = column.first + number % column_count * column.step;
  }
  POLYOP_HD int64_t LocationOf(const int64_t (&axes)[3]) const {
    return (axes[0] * rows + axes[1]) * columns + axes[2];
  }
  POLYOP_HD int64_t LocationOf(uint32_t number) const {
    int64_t axes[3];
    AxesOf(number, axes);
    return LocationOf(axes);
  }
};

/// Three axes; unused ones come first and have one position.
struct Neighborhood {
  NeighborAxis axes[3];

  /// Sets `result` from an operator's attributes and the shape [batch, ...S, heads, depth].
  template <class Op>
  static Status Of(const Op& op, const Shape& shape, Neighborhood* result) {
    const int axes = shape.rank() - 3;
    if (axes < 1 || axes > 3) {
      return InvalidArgument("'query': expected 1 to 3 axes between batch and heads, got shape ", ToString(shape));
    }
    const auto number = [&](const List<int64_t, 3>& list, const char* name, int i, int64_t* value) {
      if (list.size() != 1 && list.size() != axes) {
        return InvalidArgument("attribute '", name, "': expected 1 value or ", axes, ", got ", list.size());
      }
      *value = list[list.size() == 1 ? 0 : i];
      return Status::Ok();
    };
    for (int i = 0; i < axes; ++i) {
      NeighborAxis& axis = result->axes[3 - axes + i];
      int64_t causal = 0;
      POLYOP_RETURN_IF_ERROR(number(op.kernel_size, "kernel_size", i, &axis.kernel));
      POLYOP_RETURN_IF_ERROR(number(op.dilation, "dilation", i, &axis.dilation));
      POLYOP_RETURN_IF_ERROR(number(op.is_causal, "is_causal", i, &causal));
      axis.causal = causal != 0;
      axis.extent = shape[1 + i];
      if (axis.kernel * axis.dilation > axis.extent) {
        return InvalidArgument("'query': expected at least kernel_size * dilation = ", axis.kernel * axis.dilation,
                               " positions in dimension ", 1 + i, ", got ", axis.extent);
      }
    }
    return Status::Ok();
  }

  POLYOP_HD int64_t positions() const { return axes[0].extent * axes[1].extent * axes[2].extent; }
  POLYOP_HD int64_t max_neighbors() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }

  /// Returns the window of a position.
  POLYOP_HD NeighborWindow WindowAt(int64_t position) const {
    int64_t at[3];
    Split(position, at);
    return {axes[0].At(at[0]), axes[1].At(at[1]), axes[2].At(at[2]), axes[1].extent, axes[2].extent};
  }
  /// Returns the positions whose windows contain a position.
  POLYOP_HD NeighborWindow WindowAround(int64_t position) const {
    int64_t at[3];
    Split(position, at);
    return {axes[0].Around(at[0]), axes[1].Around(at[1]), axes[2].Around(at[2]), axes[1].extent, axes[2].extent};
  }
  /// Returns which neighbour of `query`, given along each axis, `position` is.
  POLYOP_HD int64_t NumberOf(const int64_t (&query)[3], const int64_t (&position)[3]) const {
    int64_t number = 0;
    for (int d = 0; d < 3; ++d) {
      const NeighborRange range = axes[d].At(query[d]);
      number = number * range.count + range.IndexOf(position[d]);
    }
    return number;
  }
  /// Sets the position along each axis.
  POLYOP_HD void Split(int64_t position, int64_t (&at)[3]) const {
    const int64_t line = position / axes[2].extent;
    at[2] = position - line * axes[2].extent;
    at[0] = line / axes[1].extent;
    at[1] = line - at[0] * axes[1].extent;
  }

  /// Calls visit(number, position) for the positions of a window, and returns their number.
  template <class Visit>
  POLYOP_HD int64_t ForNeighbors(int64_t position, const Visit& visit) const {
    const int64_t rows = axes[1].extent, columns = axes[2].extent;
    const NeighborRange plane = axes[0].At(position / columns / rows), row = axes[1].At(position / columns % rows),
                        column = axes[2].At(position % columns);
    int64_t number = 0;
    for (int64_t i = 0; i < plane.count; ++i) {
      for (int64_t j = 0; j < row.count; ++j) {
        const int64_t before = ((plane.first + i * plane.step) * rows + row.first + j * row.step) * columns;
        for (int64_t k = 0; k < column.count; ++k) visit(number++, before + column.first + k * column.step);
      }
    }
    return number;
  }
};

/// Returns the factor of the products.
template <class Op>
double ScaleOf(const Op& op, int64_t depth) {
  return op.scale > 0 ? static_cast<double>(op.scale)
         : depth == 0 ? 1.0
                      : 1 / __builtin_sqrt(static_cast<double>(depth));
}

}  // namespace polyop

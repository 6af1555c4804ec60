// SPDX-License-Identifier: Apache-2.0
// The cells of intervals, on the GPU.
#pragma once

#include "ops/bev/bev_intervals.h"
#include "ops/bev/quick_cumsum/quick_cumsum.h"

namespace polyop {

/// The cell of an interval's last point.
template <class I>
struct CellOfPoints {
  BevIntervals<I> intervals;
  const I* positions;  // [points, 4]: row, column, layer, image
  int64_t images, layers, rows, columns;

  static CellOfPoints Of(const QuickCumsum& op, const BevIntervals<I>& intervals, const I* positions) {
    return {intervals, positions, op.batch_size, op.dimension, op.height, op.width};
  }
  int64_t cells() const { return images * layers * rows * columns; }
  /// Returns -1 if the point is outside.
  POLYOP_HD int64_t operator()(int64_t j) const {
    const I* const at = positions + 4 * (int64_t{intervals.starts[j]} + intervals.lengths[j] - 1);
    const bool inside = at[0] >= 0 && at[0] < rows && at[1] >= 0 && at[1] < columns && at[2] >= 0 && at[2] < layers &&
                        at[3] >= 0 && at[3] < images;
    return inside ? ((at[3] * layers + at[2]) * rows + at[0]) * columns + at[1] : int64_t{-1};
  }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// A check of positions, shared by the CPU kernel and the reference.
#pragma once

#include "core/status.h"
#include "core/tensor.h"
#include "ops/bev/bev_intervals.h"

namespace polyop {

/// The dimensions of 'bev' that the components (row, column, layer, image) of 'geom_feats' index.
inline constexpr int kPositionDimensions[] = {2, 3, 1, 0};

/// Checks `position`, row number `row` of 'geom_feats'.
template <class I>
Status CheckPosition(int64_t row, const I* position, const Shape& bev) {
  for (int k = 0; k < 4; ++k) {
    const int64_t at = position[k], extent = bev[kPositionDimensions[k]];
    if (at >= 0 && at < extent) continue;
    return InvalidArgument("'geom_feats'[", row, ", ", k, "]: expected a value in [0, ", extent, "), got ", at);
  }
  return Status::Ok();
}

/// Finds the cell of interval `j`, which has points: that of its last point.
template <class I>
Status FindCell(const BevIntervals<I>& intervals, int64_t j, const I* geom_feats, const Shape& bev, int64_t* cell) {
  const int64_t last = int64_t{intervals.starts[j]} + intervals.lengths[j] - 1;
  const I* const position = geom_feats + 4 * last;
  POLYOP_RETURN_IF_ERROR(CheckPosition(last, position, bev));
  int64_t at[4];
  for (int k = 0; k < 4; ++k) at[kPositionDimensions[k]] = position[k];
  *cell = ((at[0] * bev[1] + at[1]) * bev[2] + at[2]) * bev[3] + at[3];
  return Status::Ok();
}

}  // namespace polyop

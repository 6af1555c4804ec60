// SPDX-License-Identifier: Apache-2.0
// The interval that each cell of a bird's eye view sums.
#pragma once

#include <algorithm>

#include "core/context.h"
#include "kernels/cpu/check_indices.h"
#include "ops/bev/bev_intervals.h"
#include "ops/bev/bev_ranks.h"

namespace polyop {

inline constexpr int32_t kNoInterval = -1;

/// Finds for each cell the last interval that writes it. cell_of(interval, &cell) returns an error if there is no such
/// cell.
template <class I, class CellOf>
Status FindOwners(const BevIntervals<I>& intervals, int64_t cells, const CellOf& cell_of, int32_t* owner) {
  POLYOP_RETURN_IF_ERROR(intervals.Check());
  std::fill_n(owner, cells, kNoInterval);
  for (int64_t j = 0; j < intervals.count; ++j) {
    if (intervals.lengths[j] == 0) continue;
    int64_t cell = 0;
    POLYOP_RETURN_IF_ERROR(cell_of(j, &cell));
    owner[cell] = static_cast<int32_t>(j);
  }
  return Status::Ok();
}

/// Finds the owners for BEV pooling, whose intervals belong to the cells that 'ranks_bev' has at their starts. Returns
/// an error for an interval or a rank that is out of range.
template <class I>
Status FindRankOwners(const Context& context, const BevIntervals<I>& intervals, const Tensor<const I, 1>& ranks_depth,
                      const Tensor<const I, 1>& ranks_feat, const Tensor<const I, 1>& ranks_bev, int64_t depths,
                      int64_t pixels, int64_t cells, int32_t* owner) {
  const auto cell_of = [&](int64_t j, int64_t* cell) {
    *cell = ranks_bev[intervals.starts[j]];
    return CheckCell(intervals.starts[j], *cell, cells);
  };
  POLYOP_RETURN_IF_ERROR(FindOwners(intervals, cells, cell_of, owner));
  const auto check = [&](const char* name, const Tensor<const I, 1>& ranks, int64_t limit) {
    if (AreInside(context, ranks.data(), ranks.size(), limit)) return Status::Ok();
    return CheckRanks(name, intervals, ranks, limit);  // ranks outside of all intervals may have any value
  };
  POLYOP_RETURN_IF_ERROR(check("ranks_depth", ranks_depth, depths));
  return check("ranks_feat", ranks_feat, pixels);
}

}  // namespace polyop

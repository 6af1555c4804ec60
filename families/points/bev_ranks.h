// What the values of a pooling's ranks must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include "core/status.h"
#include "core/tensor.h"
#include "families/points/bev_intervals.h"

namespace polyop {

/// Rank number `rank` of 'ranks_bev' against the cells of the view.
inline Status CheckCell(int64_t rank, int64_t cell, int64_t cells) {
  if (cell >= 0 && cell < cells) return Status::Ok();
  return InvalidArgument("'ranks_bev'[", rank, "] is ", cell, ", wanted a cell in [0, ", cells, ")");
}

/// Those ranks that intervals name.
template <class I>
Status CheckRanks(const char* name, const BevIntervals<I>& intervals, const Tensor<const I, 1>& ranks, int64_t limit) {
  for (int64_t j = 0; j < intervals.count; ++j) {
    for (int64_t r = intervals.starts[j]; r < intervals.starts[j] + intervals.lengths[j]; ++r) {
      if (ranks[r] >= 0 && ranks[r] < limit) continue;
      return InvalidArgument("'", name, "'[", r, "] is ", int64_t{ranks[r]}, ", wanted a value in [0, ", limit, ")");
    }
  }
  return Status::Ok();
}

}  // namespace polyop

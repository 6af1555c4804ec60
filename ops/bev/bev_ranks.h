// SPDX-License-Identifier: Apache-2.0
// Checks of the ranks of BEV pooling, shared by the CPU kernel and the reference kernel.
#pragma once

#include "core/status.h"
#include "core/tensor.h"
#include "ops/bev/bev_intervals.h"

namespace polyop {

/// Checks that element `rank` of 'ranks_bev' is a cell of the view.
inline Status CheckCell(int64_t rank, int64_t cell, int64_t cells) {
  if (cell >= 0 && cell < cells) return Status::Ok();
  return InvalidArgument("'ranks_bev'[", rank, "]: expected a cell in [0, ", cells, "), got ", cell);
}

/// Checks that all ranks inside intervals are in [0, limit).
template <class I>
Status CheckRanks(const char* name, const BevIntervals<I>& intervals, const Tensor<const I, 1>& ranks, int64_t limit) {
  for (int64_t j = 0; j < intervals.count; ++j) {
    for (int64_t r = intervals.starts[j]; r < intervals.starts[j] + intervals.lengths[j]; ++r) {
      if (ranks[r] >= 0 && ranks[r] < limit) continue;
      return InvalidArgument("'", name, "'[", r, "]: expected a value in [0, ", limit, "), got ", int64_t{ranks[r]});
    }
  }
  return Status::Ok();
}

}  // namespace polyop

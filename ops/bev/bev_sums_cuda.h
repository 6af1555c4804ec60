// SPDX-License-Identifier: Apache-2.0
// Sums of features per cell of a bird's eye view on the GPU, for ranks or points that are grouped by cell.
#pragma once

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/last_items.h"
#include "ops/bev/bev_intervals.h"

namespace polyop {

/// Returns the cell of interval j, or -1 if the interval is empty or outside of the ranks. cell_of(interval) returns
/// the cell, or a number outside of [0, cells) if there is none.
template <class I, class CellOf>
POLYOP_HD int64_t CellOfInterval(const BevIntervals<I>& intervals, int64_t j, int64_t cells, const CellOf& cell_of) {
  if (!intervals.Inside(j) || intervals.lengths[j] == 0) return -1;
  const int64_t cell = cell_of(j);
  return cell >= 0 && cell < cells ? cell : -1;
}

/// Finds the last interval of each cell, or -1. cell_of is that of CellOfInterval.
template <class I, class CellOf>
Status FindOwnersCuda(const CudaContext& cuda, const BevIntervals<I>& intervals, int64_t cells, const CellOf& cell_of,
                      const int64_t** owners) {
  return FindLastItems(
      cuda, intervals.count, cells,
      [=] POLYOP_DEVICE(int64_t j) { return CellOfInterval(intervals, j, cells, cell_of); }, owners);
}

/// Returns the cell that interval j is summed into, or -1.
template <class I, class CellOf>
POLYOP_HD int64_t OwnedCell(const BevIntervals<I>& intervals, int64_t j, int64_t cells, const CellOf& cell_of,
                            const int64_t* owner) {
  const int64_t cell = CellOfInterval(intervals, j, cells, cell_of);
  return cell >= 0 && owner[cell] == j ? cell : -1;
}

/// Finds the interval of each cell; then each thread sums one channel of one cell. cell_of is that of CellOfInterval.
/// value(r, c) returns channel c of rank r, weighted. Cells without an interval are 0.
template <class I, class CellOf, class Value, class T>
Status SumIntervalsCuda(const CudaContext& cuda, const BevIntervals<I>& intervals, int64_t cells, int64_t channels,
                        const CellOf& cell_of, const Value& value, T* to) {
  const int64_t* owner = nullptr;
  POLYOP_RETURN_IF_ERROR(FindOwnersCuda(cuda, intervals, cells, cell_of, &owner));
  const Divider by_channels(channels);
  return ForEach(cuda, cells * channels, [=] POLYOP_DEVICE(int64_t i) {
    int64_t c;
    const int64_t j = owner[by_channels.Split(i, &c)];
    float sum = 0;
    if (j >= 0) {
      const int64_t begin = intervals.starts[j], end = begin + intervals.lengths[j];
      for (int64_t r = begin; r < end; ++r) sum += value(r, c);
    }
    to[i] = FromFloat<T>(sum);
  });
}

}  // namespace polyop

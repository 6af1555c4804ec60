// Sums of points' features by the cells of a bird's eye view, whose ranks or points stand cell by cell, on the GPU.
#pragma once

#include "families/points/bev_intervals.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// The last interval of each cell is found first; then a thread sums one channel of one cell. cell_of(interval): the
/// cell, or a number outside of [0, cells). value(r, c): channel c of rank r, weighed. An interval that does not lie in
/// the ranks, or has no cell, writes nothing; cells of no interval are 0.
template <class I, class CellOf, class Value, class T>
Status SumIntervalsCuda(const CudaContext& cuda, const BevIntervals<I>& intervals, int64_t cells, int64_t channels,
                        const CellOf& cell_of, const Value& value, T* to) {
  int64_t* const owner = cuda.Allocate<int64_t>(cells);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, cells, [=] POLYOP_DEVICE(int64_t cell) { owner[cell] = -1; }));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, intervals.count, [=] POLYOP_DEVICE(int64_t j) {
    if (!intervals.Inside(j) || intervals.lengths[j] == 0) return;
    const int64_t cell = cell_of(j);
    if (cell >= 0 && cell < cells) AtomicMax(owner + cell, j);
  }));
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

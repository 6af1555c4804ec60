// SPDX-License-Identifier: Apache-2.0
// Runs of equal elements in a sorted sequence, on the GPU.
#pragma once

#include "kernels/cuda/prefix_sums.h"

namespace polyop {

/// Run r of a sequence of `length` elements is [starts[r], starts[r + 1]).
struct SortedRuns {
  const int64_t* heads_before;  // [length + 1]: number of runs that begin before an element; then the total
  const int64_t* starts;        // [length + 1]
  int64_t length;

  /// Finds the runs. is_head(i) returns whether element i differs from the previous one; it is not called for i = 0.
  template <class IsHead>
  static Status Find(const CudaContext& cuda, int64_t length, const IsHead& is_head, SortedRuns* runs) {
    int64_t* const before = cuda.Allocate<int64_t>(length + 1);
    int64_t* const starts = cuda.Allocate<int64_t>(length + 1);
    *runs = {before, starts, length};
    POLYOP_RETURN_IF_ERROR(
        TiledPrefixSums(cuda, length, [=] POLYOP_DEVICE(int64_t i) { return int64_t{i == 0 || is_head(i)}; }, before));
    return ForEach(cuda, length + 1, [=] POLYOP_DEVICE(int64_t i) {
      if (i == length || before[i + 1] != before[i]) starts[before[i]] = i;
    });
  }

  /// For device code, after Find.
  POLYOP_HD int64_t count() const { return heads_before[length]; }
  POLYOP_HD int64_t RunOf(int64_t i) const { return heads_before[i + 1] - 1; }
  POLYOP_HD int64_t SizeOf(int64_t run) const { return starts[run + 1] - starts[run]; }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// The pairs of all offsets as one list, for CUDA kernels.
#pragma once

#include "ops/sparse/sorted_pairs_cuda.h"
#include "ops/sparse/sparse_values.h"

namespace polyop {

/// The columns of all lists, followed by `centre` pairs of equal rows at the centre of a submanifold convolution.
template <class I>
struct ListedPairs {
  PairLists<I> lists;
  int64_t centre;
  Divider by_columns;  // by lists.columns

  int64_t count() const { return lists.offsets * lists.columns + centre; }
  /// Returns pair i, or rows of -1 for a column that is not a pair. The rows are not checked.
  POLYOP_HD SparsePairAt At(int64_t i) const {
    const int64_t listed = lists.offsets * lists.columns;
    if (i >= listed) return {lists.offsets / 2, i - listed, i - listed};
    int64_t j;
    const int64_t f = by_columns.Split(i, &j);
    const bool valid = !lists.IsCentre(f) && lists.Count(f) <= lists.columns && j < lists.Count(f);
    return {f, valid ? lists.Input(f, j) : -1, valid ? lists.Output(f, j) : -1};
  }
};

}  // namespace polyop

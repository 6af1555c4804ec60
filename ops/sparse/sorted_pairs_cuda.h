// SPDX-License-Identifier: Apache-2.0
// The pairs of a sparse convolution, sorted on the GPU.
#pragma once

#include <bit>

#include "kernels/cuda/device_sort.h"
#include "ops/sparse/gathered_product_cuda.h"

namespace polyop {

/// A pair of rows at an offset of the filter.
struct SparsePairAt {
  int64_t offset, input, output;
};

/// Pairs sorted by one of their rows, then by offset, with the other row. Implements the Pairs of GatheredProductCuda
/// for `row` as the output.
struct SortedPairs {
  using State = int64_t;  // the first pair of the remaining offsets
  struct Entry {
    int64_t row, offset;
    int32_t other;
  };

  const uint64_t* keys;
  const int32_t* others;
  int64_t count, offsets;

  /// An entry that is not in the list.
  POLYOP_HD static Entry None() { return {-1, 0, -1}; }

  /// Sorts entry(i) for i in [0, count). Requires: rows are in [0, rows).
  template <class Find>
  static Status Sort(const CudaContext& cuda, int64_t count, int64_t rows, int64_t offsets, const Find& entry,
                     SortedPairs* pairs) {
    const auto none = static_cast<uint64_t>(rows * offsets);
    SortPairs sorted = SortPairs::Allocate(cuda, count);
    {
      uint64_t* const keys = sorted.keys;
      int32_t* const values = sorted.values;
      POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
        const Entry found = entry(i);
        keys[i] = found.row >= 0 ? static_cast<uint64_t>(found.row * offsets + found.offset) : none;
        values[i] = found.other;
      }));
    }
    POLYOP_RETURN_IF_ERROR(sorted.Sort(cuda, std::bit_width(none)));
    *pairs = {sorted.keys, sorted.values, count, offsets};
    return Status::Ok();
  }

  /// Returns the first pair of this key, or of a greater one.
  POLYOP_HD int64_t FirstOf(int64_t row, int64_t offset) const {
    const auto key = static_cast<uint64_t>(row * offsets + offset);
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (keys[middle] < key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  POLYOP_HD int64_t Start(int64_t row) const { return FirstOf(row, 0); }
  POLYOP_HD EntryRange Find(int64_t& at, int64_t row, int64_t f) const {
    const auto key = static_cast<uint64_t>(row * offsets + f);
    const int64_t begin = at;
    while (at < count && keys[at] == key) ++at;
    return {begin, at};
  }
  POLYOP_HD int64_t RowOf(int64_t entry) const { return others[entry]; }
};

}  // namespace polyop

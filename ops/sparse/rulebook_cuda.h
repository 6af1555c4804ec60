// SPDX-License-Identifier: Apache-2.0
// The rulebook of a sparse convolution on the GPU, built by sorting and searching.
#pragma once

#include <bit>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device_sort.h"
#include "kernels/cuda/prefix_sums.h"
#include "ops/sparse/sparse_rule.h"

namespace polyop {

/// Outputs of FindPairs. `out_indices` has room for `capacity` rows; `*count` receives the number of outputs, which is
/// also the width of `pairs`.
template <class I>
struct RulebookOutputs {
  I* out_indices;
  int32_t* pairs;
  int64_t* count;
  int64_t capacity;
};

namespace rulebook_internal {

// Voxels outside of the grid, which are an error on the CPU, are ignored.
template <class I>
Status FindSubmanifold(const CudaContext& cuda, const SparseGrid& grid, const I* indices, int64_t rows,
                       const RulebookOutputs<I>& out) {
  const uint64_t none = static_cast<uint64_t>(grid.cells());
  SortPairs sorted = SortPairs::Allocate(cuda, rows);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, rows, [=] POLYOP_DEVICE(int64_t n) {
    const I* const row = indices + 4 * n;
    const int64_t at[3] = {row[1], row[2], row[3]};
    sorted.keys[n] = grid.Contains(row) ? static_cast<uint64_t>(grid.CellOf(row[0], at)) : none;
    sorted.values[n] = static_cast<int32_t>(n);
    for (int k = 0; k < 4; ++k) out.out_indices[4 * n + k] = row[k];
  }));
  POLYOP_RETURN_IF_ERROR(sorted.Sort(cuda, std::bit_width(none)));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) { *out.count = rows; }));
  const int64_t offsets = grid.offsets();
  const Divider by_rows(rows);
  return ForEach(cuda, offsets * rows, [=] POLYOP_DEVICE(int64_t i) {
    int64_t o, r[3];
    const int64_t f = by_rows.Split(i, &o);
    grid.Split(f, r);
    const I* const row = indices + 4 * o;
    int64_t from[3];
    bool inside = grid.Contains(row) && f != offsets / 2;
    for (int a = 0; a < 3; ++a) inside = inside && grid.InputOf(a, row[a + 1], r[a], &from[a]);
    int32_t found = f == offsets / 2 ? static_cast<int32_t>(o) : -1;
    if (inside) {  // the first of equal keys is the first row
      const auto key = static_cast<uint64_t>(grid.CellOf(row[0], from));
      int64_t low = 0, high = rows;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (sorted.keys[middle] < key) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      if (low < rows && sorted.keys[low] == key) found = sorted.values[low];
    }
    out.pairs[f * rows + o] = found;
  });
}

// Every voxel lists its outputs; after sorting, each run of equal outputs becomes one.
template <class I>
Status FindOutputs(const CudaContext& cuda, const SparseGrid& grid, const I* indices, int64_t rows,
                   const RulebookOutputs<I>& out) {
  const uint64_t none = static_cast<uint64_t>(grid.cells());
  const int64_t offsets = grid.offsets();
  if (rows > INT32_MAX / offsets) {
    return InvalidArgument("'indices': expected fewer than 2^31 pairs of rows and offsets of the filter, got ", rows,
                           " x ", offsets);
  }
  SortPairs sorted = SortPairs::Allocate(cuda, offsets * rows);
  const Divider by_rows(rows);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, sorted.count, [=] POLYOP_DEVICE(int64_t i) {
    int64_t n, r[3], to[3];
    grid.Split(by_rows.Split(i, &n), r);
    const I* const row = indices + 4 * n;
    bool inside = grid.Contains(row);
    for (int a = 0; a < 3; ++a) inside = inside && grid.OutputOf(a, row[a + 1], r[a], &to[a]);
    sorted.keys[i] = inside ? static_cast<uint64_t>(grid.CellOf(row[0], to)) : none;
    sorted.values[i] = static_cast<int32_t>(i);
  }));
  POLYOP_RETURN_IF_ERROR(sorted.Sort(cuda, std::bit_width(none)));
  int64_t* const before = cuda.Allocate<int64_t>(sorted.count + 1);  // number of outputs that begin before an element
  const auto begins = [=] POLYOP_DEVICE(int64_t i) {
    return int64_t{sorted.keys[i] < none && (i == 0 || sorted.keys[i - 1] != sorted.keys[i])};
  };
  POLYOP_RETURN_IF_ERROR(TiledPrefixSums(cuda, sorted.count, begins, before));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) { *out.count = before[sorted.count]; }));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, offsets * out.capacity, [=] POLYOP_DEVICE(int64_t i) {
    if (i < offsets * *out.count) out.pairs[i] = -1;
  }));
  const uint64_t extents[3] = {static_cast<uint64_t>(grid.extent(0)), static_cast<uint64_t>(grid.extent(1)),
                               static_cast<uint64_t>(grid.extent(2))};
  return ForEach(cuda, sorted.count, [=] POLYOP_DEVICE(int64_t i) {
    if (sorted.keys[i] >= none) return;
    int64_t n;
    const int64_t f = by_rows.Split(sorted.values[i], &n), o = before[i + 1] - 1;
    if (before[i + 1] != before[i]) {
      uint64_t rest = sorted.keys[i];
      for (int a = 2; a >= 0; --a) {
        out.out_indices[4 * o + 1 + a] = static_cast<I>(rest % extents[a]);
        rest /= extents[a];
      }
      out.out_indices[4 * o] = static_cast<I>(rest);
    } else if (by_rows.Quotient(sorted.values[i - 1]) == f) {
      return;  // a later voxel of the same cell
    }
    out.pairs[f * *out.count + o] = static_cast<int32_t>(n);
  });
}

}  // namespace rulebook_internal

template <class I>
Status FindPairs(const CudaContext& cuda, const SparseGrid& grid, const I* indices, int64_t rows,
                 const RulebookOutputs<I>& out) {
  const auto find = grid.subm ? rulebook_internal::FindSubmanifold<I> : rulebook_internal::FindOutputs<I>;
  return find(cuda, grid, indices, rows, out);
}

}  // namespace polyop

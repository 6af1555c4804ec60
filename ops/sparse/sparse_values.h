// SPDX-License-Identifier: Apache-2.0
// Checks of cells and pairs, shared by the CPU kernels and the reference kernels.
#pragma once

#include <cstdint>

#include "core/context.h"
#include "core/status.h"
#include "ops/sparse/sparse_rule.h"

namespace polyop {

template <class I>
Status CheckCells(const SparseGrid& grid, const I* indices, int64_t count) {
  for (int64_t n = 0; n < count; ++n) {
    const I* const row = indices + 4 * n;
    if (grid.Contains(row)) continue;
    return InvalidArgument("'indices'[", n, "]: expected a cell of a batch of ", grid.batch, " grids of ", grid.in[0],
                           " x ", grid.in[1], " x ", grid.in[2], ", got (", int64_t{row[0]}, ", ", int64_t{row[1]},
                           ", ", int64_t{row[2]}, ", ", int64_t{row[3]}, ")");
  }
  return Status::Ok();
}

/// Checks elements [begin, end) of a table of pairs. Negative elements mean no pair.
template <class I>
Status CheckPairTable(const I* pairs, int64_t begin, int64_t end, int64_t rows) {
  for (int64_t i = begin; i < end; ++i) {
    if (pairs[i] < rows) continue;
    return InvalidArgument("'pair_fwd' at flat index ", i, ": expected a row of 'features' in [0, ", rows,
                           ") or a negative number, got ", int64_t{pairs[i]});
  }
  return Status::Ok();
}

/// Lists of pairs in indice_conv's format: [2, offsets, columns], inputs first, then outputs.
template <class I>
struct PairLists {
  const I* pairs;
  const I* counts;
  int64_t offsets, columns;
  bool subm;

  /// Returns whether offset `f` is the centre of a submanifold convolution, where every input row is its own output.
  POLYOP_HD bool IsCentre(int64_t f) const { return subm && f == offsets / 2; }
  /// Returns the number of pairs of offset `f`, unchecked. Requires: not the centre.
  POLYOP_HD int64_t Count(int64_t f) const { return counts[subm && f > offsets / 2 ? offsets - 1 - f : f]; }
  POLYOP_HD int64_t Input(int64_t f, int64_t column) const { return pairs[f * columns + column]; }
  POLYOP_HD int64_t Output(int64_t f, int64_t column) const { return pairs[(offsets + f) * columns + column]; }

  /// Checks the pairs of one offset against the numbers of inputs and outputs.
  Status Check(int64_t f, int64_t inputs, int64_t outputs) const {
    if (IsCentre(f)) return Status::Ok();
    const int64_t count = Count(f);
    if (count < 0 || count > columns) {
      return InvalidArgument("'indice_num_per_loc': expected a number of pairs in [0, ", columns, "] for offset ", f,
                             ", got ", count);
    }
    for (int64_t j = 0; j < count; ++j) {
      const int64_t in = Input(f, j), out = Output(f, j);
      if (in >= 0 && in < inputs && out >= 0 && out < outputs) continue;
      return InvalidArgument("'indice_pairs': expected an input in [0, ", inputs, ") and an output in [0, ", outputs,
                             ") for pair ", j, " of offset ", f, ", got (", in, ", ", out, ")");
    }
    return Status::Ok();
  }
  /// Checks the pairs of all offsets.
  Status CheckAll(const Context& context, int64_t inputs, int64_t outputs) const {
    const Scratch<bool> invalid = context.Allocate<bool>(offsets);
    if (!invalid) return Internal("out of memory: ", offsets, " offsets");
    context.ParallelFor(offsets, 1, [&](int64_t begin, int64_t end) {
      for (int64_t f = begin; f < end; ++f) invalid[f] = !Check(f, inputs, outputs).ok();
    });
    for (int64_t f = 0; f < offsets; ++f) {
      if (invalid[f]) return Check(f, inputs, outputs);
    }
    return Status::Ok();
  }
  /// Calls add(input, output) for the pairs of offset `f` that are listed: none at the centre.
  template <class Add>
  void ForListed(int64_t f, const Add& add) const {
    const int64_t count = IsCentre(f) ? 0 : Count(f);
    for (int64_t j = 0; j < count; ++j) add(Input(f, j), Output(f, j));
  }
};

/// Checks 'num_act_out' against the maximum number of outputs of the pairs.
inline Status CheckOutputCount(int64_t count, int64_t max_count) {
  if (count >= 0 && count <= max_count) return Status::Ok();
  return InvalidArgument("'num_act_out': expected a value in [0, ", max_count, "], got ", count);
}

/// Checks 'num_act_out' against the rows of the gradient.
inline Status CheckGradientCount(int64_t count, int64_t rows) {
  if (count == rows) return Status::Ok();
  return InvalidArgument("'num_act_out': expected ", rows, ", the number of rows of 'grad_out', got ", count);
}

}  // namespace polyop

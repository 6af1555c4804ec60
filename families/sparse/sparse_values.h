// What cells and pairs must satisfy: the CPU's kernels and the references refuse the same.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "families/sparse/sparse_rule.h"

namespace polyop {

template <class I>
Status CheckCells(const SparseGrid& grid, const I* indices, int64_t count) {
  for (int64_t n = 0; n < count; ++n) {
    const I* const row = indices + 4 * n;
    if (grid.Contains(row)) continue;
    return InvalidArgument("'indices': row ", n, " is (", int64_t{row[0]}, ", ", int64_t{row[1]}, ", ", int64_t{row[2]},
                           ", ", int64_t{row[3]}, "), wanted a cell of a batch of ", grid.batch, " grids of ",
                           grid.in[0], " x ", grid.in[1], " x ", grid.in[2]);
  }
  return Status::Ok();
}

/// Elements [begin, end) of a table of pairs; a negative one is none.
template <class I>
Status CheckPairTable(const I* pairs, int64_t begin, int64_t end, int64_t rows) {
  for (int64_t i = begin; i < end; ++i) {
    if (pairs[i] < rows) continue;
    return InvalidArgument("'pair_fwd': element ", i, " is ", int64_t{pairs[i]}, ", wanted a row of 'features' in [0, ",
                           rows, "), or a negative number");
  }
  return Status::Ok();
}

/// Lists of pairs as indice_conv gets them: `offsets` times `columns` of inputs, then of outputs.
template <class I>
struct PairLists {
  const I* pairs;
  const I* counts;
  int64_t offsets, columns;
  bool subm;

  /// Every row feeds its own output.
  POLYOP_HD bool IsCentre(int64_t f) const { return subm && f == offsets / 2; }
  /// Of how many columns offset `f` makes use, unchecked; not for the centre.
  POLYOP_HD int64_t Count(int64_t f) const { return counts[subm && f > offsets / 2 ? offsets - 1 - f : f]; }
  POLYOP_HD int64_t Input(int64_t f, int64_t column) const { return pairs[f * columns + column]; }
  POLYOP_HD int64_t Output(int64_t f, int64_t column) const { return pairs[(offsets + f) * columns + column]; }

  /// The list of one offset against the rows of features and of the output.
  Status Check(int64_t f, int64_t inputs, int64_t outputs) const {
    if (IsCentre(f)) return Status::Ok();
    const int64_t count = Count(f);
    if (count < 0 || count > columns) {
      return InvalidArgument("'indice_num_per_loc' gives offset ", f, " ", count, " pairs, wanted a number in [0, ",
                             columns, "]");
    }
    for (int64_t j = 0; j < count; ++j) {
      const int64_t in = Input(f, j), out = Output(f, j);
      if (in >= 0 && in < inputs && out >= 0 && out < outputs) continue;
      return InvalidArgument("'indice_pairs': pair ", j, " of offset ", f, " is (", in, ", ", out, "), wanted one of ",
                             inputs, " inputs and one of ", outputs, " outputs");
    }
    return Status::Ok();
  }
};

/// `most`: the most outputs that the pairs can have.
inline Status CheckOutputCount(int64_t count, int64_t most) {
  if (count >= 0 && count <= most) return Status::Ok();
  return InvalidArgument("'num_act_out' is ", count, ", wanted a number in [0, ", most, "]");
}

}  // namespace polyop

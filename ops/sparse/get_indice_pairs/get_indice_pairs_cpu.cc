// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/sparse/get_indice_pairs/get_indice_pairs.h"
#include "ops/sparse/rulebook.h"

namespace polyop {
namespace {

// The kernel only sorts and looks up keys, so this file is compiled once and not for every instruction set.

// Lists the pairs of one filter offset. table[o] is the input row of output o, or -1. Fills the rest of `in` and `out`
// with -1. Returns the number of pairs.
int32_t ListPairs(const int32_t* table, int64_t outputs, int64_t columns, int32_t* in, int32_t* out) {
  int64_t count = 0;
  for (int64_t o = 0; o < outputs; ++o) {
    if (table[o] < 0) continue;
    in[count] = table[o];
    out[count++] = static_cast<int32_t>(o);
  }
  std::fill(in + count, in + columns, -1);
  std::fill(out + count, out + columns, -1);
  return static_cast<int32_t>(count);
}

template <class I>
Status GetIndicePairsCpu(const GetIndicePairs& op, const Context& context, Tensor<const I, 2> indices,
                         Pending<I, 2> out_indices, Tensor<int32_t, 3> indice_pairs,
                         Tensor<int32_t, 1> indice_num_per_loc, Tensor<int32_t, 0> num_act_out) {
  const SparseGrid grid = op.Grid();
  const int64_t offsets = grid.offsets(), columns = indices.dim(0);
  return WithRulebook(context, grid, indices.data(), columns, [&](const auto& rulebook) {
    const int64_t outputs = rulebook.outputs();
    const Scratch<int32_t> table = context.Allocate<int32_t>(offsets * outputs);
    if (!table) return Internal("out of memory: ", offsets, " x ", outputs, " pairs");
    Tensor<I, 2> cells;
    POLYOP_RETURN_IF_ERROR(out_indices.Allocate(outputs, &cells));
    num_act_out[0] = static_cast<int32_t>(outputs);
    if (grid.subm) {
      std::copy_n(indices.data(), indices.size(), cells.data());
    } else {
      rulebook.WriteOutputs(cells.data());
    }
    rulebook.WritePairs(table.data());
    int32_t *const inputs_of = indice_pairs.data(), *const outputs_of = inputs_of + offsets * columns;
    const int64_t listed = grid.subm ? offsets / 2 + 1 : offsets;
    context.ParallelFor(listed, 1, [&](int64_t begin, int64_t end) {
      for (int64_t f = begin; f < end; ++f) {
        int32_t *const in = inputs_of + f * columns, *const out = outputs_of + f * columns;
        indice_num_per_loc[f] = ListPairs(table.data() + f * outputs, outputs, columns, in, out);
        if (!grid.subm) continue;
        const int64_t mirror = offsets - 1 - f;
        indice_num_per_loc[mirror] = 0;
        if (mirror == f) continue;
        std::copy_n(in, columns, outputs_of + mirror * columns);
        std::copy_n(out, columns, inputs_of + mirror * columns);
      }
    });
    return Status::Ok();
  });
}

POLYOP_PLAIN_CPU_KERNELS(GetIndicePairs, GetIndicePairsCpu, int32_t, int64_t);

}  // namespace
}  // namespace polyop

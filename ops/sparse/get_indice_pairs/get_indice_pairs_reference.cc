// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/sparse/get_indice_pairs/get_indice_pairs.h"
#include "ops/sparse/rulebook_reference.h"

namespace polyop {
namespace {

template <class I>
Status GetIndicePairsReference(const GetIndicePairs& op, const Context&, Tensor<const I, 2> indices,
                               Pending<I, 2> out_indices, Tensor<int32_t, 3> indice_pairs,
                               Tensor<int32_t, 1> indice_num_per_loc, Tensor<int32_t, 0> num_act_out) {
  ReferenceRulebook book;
  POLYOP_RETURN_IF_ERROR(MakeReferenceRulebook(op, indices.data(), indices.dim(0), &book));
  const auto outputs = static_cast<int64_t>(book.outputs.size());
  Tensor<I, 2> cells;
  POLYOP_RETURN_IF_ERROR(out_indices.Allocate(outputs, &cells));
  WriteCells(book.outputs, cells.data());
  num_act_out[0] = static_cast<int32_t>(outputs);
  std::fill_n(indice_pairs.data(), indice_pairs.size(), -1);
  std::fill_n(indice_num_per_loc.data(), indice_num_per_loc.size(), 0);
  const int64_t offsets = indice_pairs.dim(1), columns = indice_pairs.dim(2);
  const auto put = [&](int64_t f, int64_t column, int64_t in, int64_t out) {
    indice_pairs[f * columns + column] = static_cast<int32_t>(in);
    indice_pairs[(offsets + f) * columns + column] = static_cast<int32_t>(out);
  };
  for (int64_t f = 0; f < offsets; ++f) {
    if (op.subm && f > offsets / 2) break;
    if (op.subm && f == offsets / 2) {
      for (int64_t n = 0; n < columns; ++n) put(f, n, n, n);
      continue;
    }
    int64_t count = 0;
    for (int64_t o = 0; o < outputs; ++o) {
      const int32_t row = book.pairs[static_cast<size_t>(f)][static_cast<size_t>(o)];
      if (row < 0) continue;
      put(f, count, row, o);
      if (op.subm) put(offsets - 1 - f, count, o, row);
      ++count;
    }
    indice_num_per_loc[f] = static_cast<int32_t>(count);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(GetIndicePairs, GetIndicePairsReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop

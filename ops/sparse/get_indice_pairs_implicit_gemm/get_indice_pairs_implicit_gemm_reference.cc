// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/get_indice_pairs_implicit_gemm/get_indice_pairs_implicit_gemm.h"
#include "ops/sparse/rulebook_reference.h"

namespace polyop {
namespace {

template <class I>
Status GetIndicePairsImplicitGemmReference(const GetIndicePairsImplicitGemm& op, const Context&,
                                           Tensor<const I, 2> indices, Pending<I, 2> out_indices,
                                           Pending<int32_t, 2> pair_fwd, Pending<int32_t, 2> pair_mask,
                                           Pending<int32_t, 1> mask_argsort, Tensor<int32_t, 0> num_act_out) {
  ReferenceRulebook book;
  POLYOP_RETURN_IF_ERROR(MakeReferenceRulebook(op, indices.data(), indices.dim(0), &book));
  const auto outputs = static_cast<int64_t>(book.outputs.size());
  Tensor<I, 2> cells;
  Tensor<int32_t, 2> pairs, mask;
  Tensor<int32_t, 1> order;
  POLYOP_RETURN_IF_ERROR(out_indices.Allocate(outputs, &cells));
  POLYOP_RETURN_IF_ERROR(pair_fwd.Allocate(outputs, &pairs));
  POLYOP_RETURN_IF_ERROR(pair_mask.Allocate(outputs, &mask));
  POLYOP_RETURN_IF_ERROR(mask_argsort.Allocate(outputs, &order));
  num_act_out[0] = static_cast<int32_t>(outputs);
  WriteCells(book.outputs, cells.data());
  for (int64_t o = 0; o < outputs; ++o) {
    order[o] = static_cast<int32_t>(o);
    for (int64_t w = 0; w < mask.dim(1); ++w) mask[o * mask.dim(1) + w] = 0;
    for (int64_t f = 0; f < pairs.dim(0); ++f) {
      const int32_t row = book.pairs[static_cast<size_t>(f)][static_cast<size_t>(o)];
      pairs[f * outputs + o] = row;
      int32_t& word = mask[o * mask.dim(1) + f / 32];
      if (row >= 0) word = static_cast<int32_t>(static_cast<uint32_t>(word) | uint32_t{1} << (f % 32));
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(GetIndicePairsImplicitGemm, GetIndicePairsImplicitGemmReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/get_indice_pairs_implicit_gemm/get_indice_pairs_implicit_gemm.h"
#include "ops/sparse/rulebook_cuda.h"

namespace polyop {
namespace {

template <class I>
Status GetIndicePairsImplicitGemmCuda(const GetIndicePairsImplicitGemm& op, const CudaContext& cuda,
                                      Tensor<const I, 2> indices, Pending<I, 2> out_indices,
                                      Pending<int32_t, 2> pair_fwd, Pending<int32_t, 2> pair_mask,
                                      Pending<int32_t, 1> mask_argsort, Tensor<int32_t, 0> num_act_out) {
  const SparseGrid grid = op.Grid();
  const int64_t max_outputs = out_indices.max(), offsets = grid.offsets(), words = BlocksFor(offsets, 32);
  Tensor<I, 2> cells;
  Tensor<int32_t, 2> pairs, mask;
  Tensor<int32_t, 1> order;
  int64_t *count = nullptr, *pair_count = nullptr, *mask_count = nullptr, *order_count = nullptr;
  POLYOP_RETURN_IF_ERROR(out_indices.AllocateUpperBound(max_outputs, &cells, &count));
  POLYOP_RETURN_IF_ERROR(pair_fwd.AllocateUpperBound(max_outputs, &pairs, &pair_count));
  POLYOP_RETURN_IF_ERROR(pair_mask.AllocateUpperBound(max_outputs, &mask, &mask_count));
  POLYOP_RETURN_IF_ERROR(mask_argsort.AllocateUpperBound(max_outputs, &order, &order_count));
  POLYOP_RETURN_IF_ERROR(FindPairs(cuda, grid, indices.data(), indices.dim(0),
                                   RulebookOutputs<I>{cells.data(), pairs.data(), count, max_outputs}));
  const int32_t* const table = pairs.data();
  int32_t *const masks = mask.data(), *const numbers = order.data(), *const num = num_act_out.data();
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) {
    *num = static_cast<int32_t>(*count);
    *pair_count = *mask_count = *order_count = *count;
  }));
  const Divider by_words(words);
  return ForEach(cuda, max_outputs * words, [=] POLYOP_DEVICE(int64_t i) {
    int64_t word;
    const int64_t o = by_words.Split(i, &word), outputs = *count;
    if (o >= outputs) return;
    uint32_t bits = 0;
    for (int64_t f = word * 32; f < word * 32 + 32 && f < offsets; ++f) {
      bits |= static_cast<uint32_t>(table[f * outputs + o] >= 0) << (f % 32);
    }
    masks[i] = static_cast<int32_t>(bits);
    if (word == 0) numbers[o] = static_cast<int32_t>(o);
  });
}

POLYOP_CUDA_KERNELS(GetIndicePairsImplicitGemm, GetIndicePairsImplicitGemmCuda, int32_t, int64_t);

}  // namespace
}  // namespace polyop

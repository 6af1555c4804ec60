// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/get_indice_pairs/get_indice_pairs.h"
#include "ops/sparse/rulebook_cuda.h"

namespace polyop {
namespace {

// Counts the pairs of each offset in words of 64 outputs, so that all outputs find their columns in parallel.
template <class I>
Status GetIndicePairsCuda(const GetIndicePairs& op, const CudaContext& cuda, Tensor<const I, 2> indices,
                          Pending<I, 2> out_indices, Tensor<int32_t, 3> indice_pairs,
                          Tensor<int32_t, 1> indice_num_per_loc, Tensor<int32_t, 0> num_act_out) {
  const SparseGrid grid = op.Grid();
  const int64_t max_outputs = out_indices.max(), offsets = grid.offsets(), columns = indices.dim(0);
  Tensor<I, 2> cells;
  int64_t* count = nullptr;
  POLYOP_RETURN_IF_ERROR(out_indices.AllocateUpperBound(max_outputs, &cells, &count));
  int32_t* const table = cuda.Allocate<int32_t>(offsets * max_outputs);
  const int64_t words = BlocksFor(max_outputs, 64);
  uint64_t* const has = cuda.Allocate<uint64_t>(offsets * words);
  int64_t* const before = cuda.Allocate<int64_t>(offsets * words);
  POLYOP_RETURN_IF_ERROR(
      FindPairs(cuda, grid, indices.data(), columns, RulebookOutputs<I>{cells.data(), table, count, max_outputs}));
  int32_t *const in = indice_pairs.data(), *const out = in + offsets * columns, *const num = num_act_out.data(),
                 *const counts = indice_num_per_loc.data();
  const int64_t listed = grid.subm ? offsets / 2 : offsets;  // the other half mirrors these
  const bool subm = grid.subm;
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, 2 * offsets * columns, [=] POLYOP_DEVICE(int64_t i) { in[i] = -1; }));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, offsets, [=] POLYOP_DEVICE(int64_t f) {
    counts[f] = 0;
    if (f == 0) *num = static_cast<int32_t>(*count);
  }));
  if (max_outputs == 0) return Status::Ok();
  const Divider by_words(words), by_outputs(max_outputs);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, listed * words, [=] POLYOP_DEVICE(int64_t i) {
    int64_t w;
    const int64_t f = by_words.Split(i, &w), outputs = *count;
    uint64_t bits = 0;
    for (int64_t o = w * 64; o < w * 64 + 64 && o < outputs; ++o) {
      bits |= static_cast<uint64_t>(table[f * outputs + o] >= 0) << (o % 64);
    }
    has[i] = bits;
  }));
  POLYOP_RETURN_IF_ERROR(PrefixSums(
      cuda, listed * words, [=] POLYOP_DEVICE(int64_t i) { return static_cast<int64_t>(PopCount(has[i])); }, before,
      nullptr));
  return ForEach(cuda, (subm ? offsets / 2 + 1 : offsets) * max_outputs, [=] POLYOP_DEVICE(int64_t i) {
    int64_t o;
    const int64_t f = by_outputs.Split(i, &o), outputs = *count;
    if (o >= outputs) return;
    if (f == listed) {  // the centre
      in[f * columns + o] = out[f * columns + o] = static_cast<int32_t>(o);
      return;
    }
    const uint64_t word = has[f * words + o / 64];
    const int64_t column =
        before[f * words + o / 64] + PopCount(word & ((uint64_t{1} << (o % 64)) - 1)) - before[f * words];
    if (o == outputs - 1) counts[f] = static_cast<int32_t>(column + static_cast<int64_t>(word >> (o % 64) & 1));
    if ((word >> (o % 64) & 1) == 0) return;
    const int64_t row = table[f * outputs + o], mirror = offsets - 1 - f;
    in[f * columns + column] = static_cast<int32_t>(row);
    out[f * columns + column] = static_cast<int32_t>(o);
    if (!subm) return;
    in[mirror * columns + column] = static_cast<int32_t>(o);
    out[mirror * columns + column] = static_cast<int32_t>(row);
  });
}

POLYOP_CUDA_KERNELS(GetIndicePairs, GetIndicePairsCuda, int32_t, int64_t);

}  // namespace
}  // namespace polyop

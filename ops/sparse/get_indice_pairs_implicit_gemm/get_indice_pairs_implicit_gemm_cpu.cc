// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "ops/sparse/get_indice_pairs_implicit_gemm/get_indice_pairs_implicit_gemm.h"
#include "ops/sparse/rulebook.h"

namespace polyop {
namespace {

// The kernel only sorts and looks up keys, so this file is compiled once and not for every instruction set.

// Computes mask[outputs][words]: one bit per filter offset that has a pair.
void WriteMasks(const Context& context, const int32_t* pairs, int64_t offsets, int64_t outputs, int64_t words,
                int32_t* mask) {
  constexpr int64_t kRun = 1024;  // outputs per task; their masks stay in L1
  context.ParallelFor(outputs, kRun, [&](int64_t begin, int64_t end) {
    std::fill(mask + begin * words, mask + end * words, 0);
    for (int64_t f = 0; f < offsets; ++f) {
      const int32_t* const row = pairs + f * outputs;
      const auto bit = static_cast<int32_t>(uint32_t{1} << (f % 32));
      for (int64_t o = begin; o < end; ++o) mask[o * words + f / 32] |= row[o] >= 0 ? bit : 0;
    }
  });
}

template <class I>
Status GetIndicePairsImplicitGemmCpu(const GetIndicePairsImplicitGemm& op, const Context& context,
                                     Tensor<const I, 2> indices, Pending<I, 2> out_indices,
                                     Pending<int32_t, 2> pair_fwd, Pending<int32_t, 2> pair_mask,
                                     Pending<int32_t, 1> mask_argsort, Tensor<int32_t, 0> num_act_out) {
  const SparseGrid grid = op.Grid();
  return WithRulebook(context, grid, indices.data(), indices.dim(0), [&](const auto& rulebook) {
    const int64_t outputs = rulebook.outputs();
    Tensor<I, 2> cells;
    Tensor<int32_t, 2> pairs, mask;
    Tensor<int32_t, 1> order;
    POLYOP_RETURN_IF_ERROR(out_indices.Allocate(outputs, &cells));
    POLYOP_RETURN_IF_ERROR(pair_fwd.Allocate(outputs, &pairs));
    POLYOP_RETURN_IF_ERROR(pair_mask.Allocate(outputs, &mask));
    POLYOP_RETURN_IF_ERROR(mask_argsort.Allocate(outputs, &order));
    num_act_out[0] = static_cast<int32_t>(outputs);
    if (grid.subm) {
      std::copy_n(indices.data(), indices.size(), cells.data());
    } else {
      rulebook.WriteOutputs(cells.data());
    }
    rulebook.WritePairs(pairs.data());
    WriteMasks(context, pairs.data(), grid.offsets(), outputs, mask.dim(1), mask.data());
    std::iota(order.data(), order.data() + outputs, 0);
    return Status::Ok();
  });
}

POLYOP_PLAIN_CPU_KERNELS(GetIndicePairsImplicitGemm, GetIndicePairsImplicitGemmCpu, int32_t, int64_t);

}  // namespace
}  // namespace polyop

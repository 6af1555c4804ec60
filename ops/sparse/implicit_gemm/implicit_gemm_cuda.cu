// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/gathered_product_cuda.h"
#include "ops/sparse/implicit_gemm/implicit_gemm.h"

namespace polyop {
namespace {

// The entries of the table. A row out of range, which is an error on the CPU, is ignored.
template <class I>
struct TablePairs {
  struct State {};
  const I* table;
  int64_t outputs, rows;

  POLYOP_HD State Start(int64_t) const { return {}; }
  POLYOP_HD EntryRange Find(State&, int64_t o, int64_t f) const {
    const int64_t entry = f * outputs + o;
    const bool feeds = table[entry] >= 0 && table[entry] < rows;
    return {entry, feeds ? entry + 1 : entry};
  }
  POLYOP_HD int64_t RowOf(int64_t entry) const { return table[entry]; }
};

template <class T, class I>
Status ImplicitGemmCuda(const ImplicitGemm& op, const CudaContext& cuda, Tensor<const T, 2> features,
                        Tensor<const T, 5> filters, Tensor<const I, 2> pair_fwd, Tensor<const I, 2>, Tensor<const I, 1>,
                        std::optional<Tensor<const T, 1>> bias, Tensor<T, 2> out) {
  const TablePairs<I> pairs{pair_fwd.data(), out.dim(0), features.dim(0)};
  const int64_t channels = features.dim(1), offsets = pair_fwd.dim(0);
  const GatheredFactors<T> factors{features.data(),
                                   features.dim(0),
                                   channels,
                                   filters.data(),
                                   FilterStrides::Of(offsets, channels),
                                   offsets,
                                   out.dim(1),
                                   bias ? bias->data() : nullptr,
                                   op.activation(),
                                   out.dim(0),
                                   nullptr,
                                   out.data()};
  return GatheredProductCuda<false>(cuda, factors, pairs);
}

POLYOP_CUDA_KERNELS(ImplicitGemm, ImplicitGemmCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sort_rows.h"
#include "ops/sorting/argsort/argsort.h"

namespace polyop {
namespace {

template <class T>
Status ArgsortCuda(const Argsort& op, const CudaContext& cuda, Tensor<const T, kAnyRank> x,
                   Tensor<int64_t, kAnyRank> order) {
  const int64_t length = x.dim(x.rank() - 1);
  SortPairs sort;
  POLYOP_RETURN_IF_ERROR(SortRows(cuda, x.data(), x.size(), length, op.descending != 0, &sort));
  const int32_t* const sorted = sort.values;
  int64_t* const to = order.data();
  return ForEach(cuda, x.size(), [=] POLYOP_DEVICE(int64_t i) { to[i] = sorted[i] % length; });
}

POLYOP_CUDA_KERNELS(Argsort, ArgsortCuda, float, double, Half, BFloat16, int32_t, int64_t);

}  // namespace
}  // namespace polyop

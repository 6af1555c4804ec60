// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/sorting/search_sorted/search_sorted.h"

namespace polyop {
namespace {

template <class T>
Status SearchSortedCuda(const SearchSorted& op, const CudaContext& cuda, Tensor<const T, kAnyRank> sorted_sequence,
                        Tensor<const T, kAnyRank> values, Tensor<int64_t, kAnyRank> indices) {
  const int64_t length = sorted_sequence.dim(sorted_sequence.rank() - 1), count = values.dim(values.rank() - 1);
  const T *const sequences = sorted_sequence.data(), *const from = values.data();
  int64_t* const to = indices.data();
  const bool right = op.right != 0;
  return ForEach(cuda, values.size(), [=] POLYOP_DEVICE(int64_t i) {
    to[i] = SearchOne(sequences + i / count * length, length, from[i], right);
  });
}

POLYOP_CUDA_KERNELS(SearchSorted, SearchSortedCuda, float, double, int32_t, int64_t);

}  // namespace
}  // namespace polyop

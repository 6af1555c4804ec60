// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/indice_conv/indice_conv_backward.h"
#include "ops/sparse/indice_conv/listed_pairs_cuda.h"
#include "ops/sparse/sparse_conv_backward_cuda.h"

namespace polyop {
namespace {

// Ignores the pairs of a count out of range and pairs with a row out of range, and num_act_out, which is the number of
// rows of the gradient. All of these are errors on the CPU.
template <class T, class I>
Status IndiceConvBackwardCuda(const IndiceConvBackward& op, const CudaContext& cuda, Tensor<const T, 2> grad_out,
                              Tensor<const T, 2> features, Tensor<const T, 5> filters, Tensor<const I, 3> indice_pairs,
                              Tensor<const I, 1> counts, Tensor<const I, 0>, std::optional<Tensor<T, 2>> grad_features,
                              std::optional<Tensor<T, 5>> grad_filters) {
  const int64_t rows = grad_out.dim(0), offsets = counts.dim(0);
  const PairLists<I> lists{indice_pairs.data(), counts.data(), offsets, indice_pairs.dim(2), op.is_subm};
  const ListedPairs<I> listed{lists, op.is_subm && offsets > 0 ? rows : 0, Divider(lists.columns)};
  return SparseConvBackwardCuda(
      cuda, grad_out.data(), rows, grad_out.dim(1), features, filters.data(), offsets, listed.count(),
      [=] POLYOP_DEVICE(int64_t i) { return listed.At(i); }, grad_features, grad_filters);
}

POLYOP_CUDA_KERNELS(IndiceConvBackward, IndiceConvBackwardCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop

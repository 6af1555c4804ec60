// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_reduce.h"
#include "ops/sparse/implicit_gemm/implicit_gemm_backward.h"
#include "ops/sparse/sparse_conv_backward_cuda.h"

namespace polyop {
namespace {

// A row of the table that is out of range, which is an error on the CPU, is ignored.
template <class T, class I>
Status ImplicitGemmBackwardCuda(const ImplicitGemmBackward& op, const CudaContext& cuda, Tensor<const T, 2> grad_out,
                                Tensor<const T, 2> features, Tensor<const T, 5> filters, Tensor<const I, 2> pair_fwd,
                                Tensor<const I, 2>, Tensor<const I, 1>, std::optional<Tensor<const T, 1>>,
                                Tensor<const T, 2> out, std::optional<Tensor<T, 2>> grad_features,
                                std::optional<Tensor<T, 5>> grad_filters, std::optional<Tensor<T, 1>> grad_bias) {
  const int64_t rows = out.dim(0), outputs = out.dim(1), offsets = pair_fwd.dim(0);
  const ActivationRule activation = op.activation();
  const T *const of_results = grad_out.data(), *const results = out.data();
  if (grad_bias) {
    T* const to = grad_bias->data();
    POLYOP_RETURN_IF_ERROR(SumByBlocks(
        cuda, outputs, rows,
        [=] POLYOP_DEVICE(int64_t k, int64_t o) {
          const int64_t i = o * outputs + k;
          return activation.Backward(ToFloat(of_results[i]), ToFloat(results[i]));
        },
        [=] POLYOP_DEVICE(int64_t k, float sum) { to[k] = FromFloat<T>(sum); }));
  }
  if (!grad_features && !grad_filters) return cuda.Check();
  const T* grads = of_results;
  if (activation.type != SparseActivation::kNone) {  // as factors of the products, rounded to T in any case
    T* const of_sums = cuda.Allocate<T>(rows * outputs);
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, rows * outputs, [=] POLYOP_DEVICE(int64_t i) {
      of_sums[i] = FromFloat<T>(activation.Backward(ToFloat(of_results[i]), ToFloat(results[i])));
    }));
    grads = of_sums;
  }
  const I* const table = pair_fwd.data();
  const Divider by_rows(rows);
  return SparseConvBackwardCuda(
      cuda, grads, rows, outputs, features, filters.data(), offsets, offsets * rows,
      [=] POLYOP_DEVICE(int64_t i) {
        int64_t o;
        const int64_t f = by_rows.Split(i, &o);
        return SparsePairAt{f, table[i], o};
      },
      grad_features, grad_filters);
}

POLYOP_CUDA_KERNELS(ImplicitGemmBackward, ImplicitGemmBackwardCuda, (float, int32_t), (Half, int32_t),
                    (BFloat16, int32_t), (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop

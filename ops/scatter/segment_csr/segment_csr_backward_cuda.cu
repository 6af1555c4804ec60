// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/reduce_rows_backward.h"
#include "ops/scatter/segment_csr/segment_csr_backward.h"

namespace polyop {
namespace {

// The gradient of a product with respect to each factor is the product of the others: the product divided by the
// factor. A factor of 0 gets the product without it. With kInverse, the result was divided by the factors. Computes in
// double, whose range holds the products of many floats.
template <bool kInverse, class T, class At>
POLYOP_HD void ProductOfColumnBackward(int64_t begin, int64_t end, const At& at, const T* from, T grad, T* to) {
  double product = 1, without_zeros = 1;
  int64_t zeros = 0;
  for (int64_t r = begin; r < end; ++r) {
    const double x = ToFloat(from[at(r)]);
    product *= x;
    without_zeros *= x == 0 ? 1.0 : x;
    zeros += x == 0;
  }
  for (int64_t r = begin; r < end; ++r) {
    const double x = ToFloat(from[at(r)]), g = ToFloat(grad);
    const double of_factor = x != 0 ? product / x : zeros == 1 ? without_zeros : 0.0;
    to[at(r)] = FromFloat<T>(static_cast<float>(g * (kInverse ? -1 / product / x : of_factor)));
  }
}

// Computes the gradients of one column of a segment.
template <class T, class At>
POLYOP_HD void SegmentColumnBackward(SegmentCsr::Reduce reduce, int64_t begin, int64_t end, const At& at, const T* from,
                                     T out, T grad, T* to) {
  using Reduce = SegmentCsr::Reduce;
  switch (reduce) {
    case Reduce::kSum:
    case Reduce::kMean: {
      const T share = ShareOfGradient(grad, reduce == Reduce::kMean ? end - begin : 1);
      for (int64_t r = begin; r < end; ++r) to[at(r)] = share;
      return;
    }
    case Reduce::kMul: return ProductOfColumnBackward<false>(begin, end, at, from, grad, to);
    case Reduce::kDiv: return ProductOfColumnBackward<true>(begin, end, at, from, grad, to);
    case Reduce::kMin:
    case Reduce::kMax: return ExtremeOfColumnBackward<false>(begin, end, at, from, ToFloat(out), grad, to);
  }
}

// Each thread computes one column of a segment. Rows without a segment have no gradient, nor have those of a segment
// that exceeds the rows.
template <class T, class I>
Status SegmentCsrBackwardCuda(const SegmentCsrBackward& op, const CudaContext& cuda, Tensor<const T, 2> grad_out,
                              Tensor<const T, 2> src, Tensor<const I, 1> indptr, Tensor<const T, 2> out,
                              Tensor<T, 2> grad_src) {
  const int64_t rows = src.dim(0), channels = src.dim(1);
  const T *const from = src.data(), *const reduced = out.data(), *const grads = grad_out.data();
  const I* const ends = indptr.data();
  T* const to = grad_src.data();
  const SegmentCsr::Reduce reduce = op.reduce;
  const Divider by_channels(channels);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, grad_src.size(), [=] POLYOP_DEVICE(int64_t i) { to[i] = FromFloat<T>(0); }));
  return ForEach(cuda, out.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t c;
    const int64_t m = by_channels.Split(i, &c), begin = ends[m], end = ends[m + 1];
    if (begin < 0 || begin > end || end > rows) return;
    const auto at = [&](int64_t r) { return r * channels + c; };
    SegmentColumnBackward(reduce, begin, end, at, from, reduced[i], grads[i], to);
  });
}

POLYOP_CUDA_KERNELS(SegmentCsrBackward, SegmentCsrBackwardCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop

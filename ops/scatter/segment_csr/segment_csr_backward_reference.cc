// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/scatter/segment_csr/segment_csr_backward.h"
#include "ops/scatter/segment_csr/segment_csr_values.h"

namespace polyop {
namespace {

// Computes the gradient of one column of a segment, whose rows are `stride` apart.
void ColumnBackward(SegmentCsr::Reduce reduce, const double* rows, int64_t count, int64_t stride, double out,
                    double grad, double* to) {
  using Reduce = SegmentCsr::Reduce;
  double product = 1, without_zeros = 1;
  int64_t zeros = 0;
  for (int64_t r = 0; r < count; ++r) {
    const double x = rows[r * stride];
    product *= x;
    if (x != 0) without_zeros *= x;
    zeros += x == 0;
  }
  bool given = false;  // to the first row that attains the extremum
  for (int64_t r = 0; r < count; ++r) {
    const double x = rows[r * stride];
    double& slope = to[r * stride];
    slope = 0;
    switch (reduce) {
      case Reduce::kSum: slope = grad; break;
      case Reduce::kMean: slope = grad / static_cast<double>(count); break;
      case Reduce::kMul: slope = grad * (x != 0 ? product / x : zeros == 1 ? without_zeros : 0); break;
      case Reduce::kDiv: slope = grad * (-1 / product / x); break;
      case Reduce::kMin:
      case Reduce::kMax:
        if (!given && x == out) slope = grad;
        given |= x == out;
        break;
    }
  }
}

template <class I>
Status SegmentCsrBackwardReference(const SegmentCsrBackward& op, const Context&, Tensor<const double, 2> grad_out,
                                   Tensor<const double, 2> src, Tensor<const I, 1> indptr, Tensor<const double, 2> out,
                                   Tensor<double, 2> grad_src) {
  POLYOP_RETURN_IF_ERROR(CheckIndptr(indptr, src.dim(0)));
  const int64_t channels = src.dim(1);
  std::fill_n(grad_src.data(), grad_src.size(), 0.0);
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t m = i / channels, at = indptr[m] * channels + i % channels;
    ColumnBackward(op.reduce, src.data() + at, indptr[m + 1] - indptr[m], channels, out[i], grad_out[i],
                   grad_src.data() + at);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(SegmentCsrBackward, SegmentCsrBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop

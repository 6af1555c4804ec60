// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/reduce_rows.h"
#include "ops/scatter/segment_csr/segment_csr.h"

namespace polyop {
namespace {

// Each thread reduces one column of a segment. A segment that exceeds the rows becomes NaN.
template <class Reduction, class T, class I>
Status ReduceSegments(const CudaContext& cuda, const Tensor<const T, 2>& src, const Tensor<const I, 1>& indptr,
                      const Tensor<T, 2>& out) {
  const int64_t rows = src.dim(0), channels = src.dim(1);
  const T* const from = src.data();
  const I* const ends = indptr.data();
  T* const to = out.data();
  const Divider by_channels(channels);
  return ForEach(cuda, out.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t c;
    const int64_t m = by_channels.Split(i, &c), begin = ends[m], end = ends[m + 1];
    const bool inside = begin >= 0 && begin <= end && end <= rows;
    to[i] = FromFloat<T>(
        inside ? ReduceColumn<Reduction>(begin, end, [&](int64_t r) { return ToFloat(from[r * channels + c]); }) : NAN);
  });
}

template <class T, class I>
Status SegmentCsrCuda(const SegmentCsr& op, const CudaContext& cuda, Tensor<const T, 2> src, Tensor<const I, 1> indptr,
                      Tensor<T, 2> out) {
  switch (op.reduce) {
    case SegmentCsr::Reduce::kSum: return ReduceSegments<SumOfColumn>(cuda, src, indptr, out);
    case SegmentCsr::Reduce::kMean: return ReduceSegments<MeanOfColumn>(cuda, src, indptr, out);
    case SegmentCsr::Reduce::kMul: return ReduceSegments<ProductOfColumn>(cuda, src, indptr, out);
    case SegmentCsr::Reduce::kDiv: return ReduceSegments<QuotientOfColumn>(cuda, src, indptr, out);
    case SegmentCsr::Reduce::kMin: return ReduceSegments<ExtremeOfColumnsNumbers<false>>(cuda, src, indptr, out);
    case SegmentCsr::Reduce::kMax: return ReduceSegments<ExtremeOfColumnsNumbers<true>>(cuda, src, indptr, out);
  }
  return Internal("unknown reduction");
}

POLYOP_CUDA_KERNELS(SegmentCsr, SegmentCsrCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scatter/segment_csr/segment_csr_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/reduce_rows-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/scatter/segment_csr/segment_csr.h"
#include "ops/scatter/segment_csr/segment_csr_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Reduction, class T, class I>
void ReduceSegments(const Context& context, const Tensor<const T, 2>& src, const Tensor<const I, 1>& indptr,
                    const Tensor<T, 2>& out) {
  const int64_t segments = out.dim(0), channels = out.dim(1);
  const PlainRows<T> rows{src.data(), channels};
  const double of_segment = 1 + static_cast<double>(src.dim(0)) / static_cast<double>(segments);
  context.ParallelFor(segments, GrainFor(2 + 0.2 * static_cast<double>(channels) * of_segment),
                      [&](int64_t begin, int64_t end) HWY_ATTR {
                        for (int64_t m = begin; m < end; ++m) {
                          ReduceRows<Reduction>(rows, indptr[m], indptr[m + 1], channels, out.data() + m * channels);
                        }
                      });
}

template <class T, class I>
Status Reduce(const SegmentCsr& op, const Context& context, const Tensor<const T, 2>& src,
              const Tensor<const I, 1>& indptr, const Tensor<T, 2>& out) {
  POLYOP_RETURN_IF_ERROR(CheckIndptr(indptr, src.dim(0)));
  switch (op.reduce) {
    case SegmentCsr::Reduce::kSum: ReduceSegments<SumOfRows>(context, src, indptr, out); break;
    case SegmentCsr::Reduce::kMean: ReduceSegments<MeanOfRows>(context, src, indptr, out); break;
    case SegmentCsr::Reduce::kMul: ReduceSegments<ProductOfRows>(context, src, indptr, out); break;
    case SegmentCsr::Reduce::kDiv: ReduceSegments<QuotientOfRows>(context, src, indptr, out); break;
    case SegmentCsr::Reduce::kMin: ReduceSegments<ExtremeOfNumbers<false>>(context, src, indptr, out); break;
    case SegmentCsr::Reduce::kMax: ReduceSegments<ExtremeOfNumbers<true>>(context, src, indptr, out); break;
  }
  return Status::Ok();
}

// Separate entry points for 32-bit and 64-bit boundaries, because a dispatch table takes templates of one argument.
template <class T>
Status SegmentCsrI32(const SegmentCsr& op, const Context& context, Tensor<const T, 2> src,
                     Tensor<const int32_t, 1> indptr, Tensor<T, 2> out) {
  return Reduce(op, context, src, indptr, out);
}
template <class T>
Status SegmentCsrI64(const SegmentCsr& op, const Context& context, Tensor<const T, 2> src,
                     Tensor<const int64_t, 1> indptr, Tensor<T, 2> out) {
  return Reduce(op, context, src, indptr, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(SegmentCsr, SegmentCsrI32, float, Half, BFloat16);
POLYOP_CPU_KERNELS(SegmentCsr, SegmentCsrI64, float, Half, BFloat16);
}  // namespace polyop
#endif

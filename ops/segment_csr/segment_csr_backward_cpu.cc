#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/segment_csr/segment_csr_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/reduce_rows_backward-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/segment_csr/segment_csr_backward.h"
#include "ops/segment_csr/segment_csr_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The gradient of a product with respect to each factor is the product of the others: the product divided by the
// factor. A factor of 0 gets the product without it. With kInverse, the result was divided by the factors. Computes in
// double, whose range holds the products of many floats.
template <bool kInverse, class T>
HWY_NOINLINE void ProductBackward(const T* rows, int64_t count, int64_t channels, const T* grad, T* to) {
  constexpr int64_t kChannels = 64;
  for (int64_t first = 0; first < channels; first += kChannels) {
    const int64_t width = std::min(kChannels, channels - first);
    double product[kChannels], without_zeros[kChannels], zeros[kChannels];
    std::fill_n(product, width, 1.0);
    std::fill_n(without_zeros, width, 1.0);
    std::fill_n(zeros, width, 0.0);
    for (int64_t r = 0; r < count; ++r) {
      const T* const row = rows + r * channels + first;
      for (int64_t c = 0; c < width; ++c) {
        const double x = ToFloat(row[c]);
        product[c] *= x;
        without_zeros[c] *= x == 0 ? 1.0 : x;
        zeros[c] += x == 0 ? 1.0 : 0.0;
      }
    }
    for (int64_t r = 0; r < count; ++r) {
      const int64_t at = r * channels + first;
      for (int64_t c = 0; c < width; ++c) {
        const double x = ToFloat(rows[at + c]), g = ToFloat(grad[first + c]);
        double slope;
        if constexpr (kInverse) {
          slope = -1 / product[c] / x;
        } else {
          slope = x != 0 ? product[c] / x : zeros[c] == 1 ? without_zeros[c] : 0.0;
        }
        to[at + c] = FromFloat<T>(static_cast<float>(g * slope));
      }
    }
  }
}

template <class T>
void SegmentBackward(SegmentCsr::Reduce reduce, const T* rows, int64_t count, int64_t channels, const T* out,
                     const T* grad, T* to) {
  using Reduce = SegmentCsr::Reduce;
  switch (reduce) {
    case Reduce::kSum:
    case Reduce::kMean:
      for (int64_t r = 0; r < count; ++r) {
        DivideRow(grad, channels, reduce == Reduce::kMean ? count : 1, to + r * channels);
      }
      return;
    case Reduce::kMul: return ProductBackward<false>(rows, count, channels, grad, to);
    case Reduce::kDiv: return ProductBackward<true>(rows, count, channels, grad, to);
    case Reduce::kMin:
    case Reduce::kMax:
      return ExtremeOfRowsBackward<false>(rows, [](int64_t r) { return r; }, count, channels, out, grad, to);
  }
}

template <class Types, class T = typename Types::Real>
Status SegmentCsrBackwardCpu(const SegmentCsrBackward& op, const Context& context, Tensor<const T, 2> grad_out,
                             Tensor<const T, 2> src, Tensor<const typename Types::Int, 1> indptr,
                             Tensor<const T, 2> out, Tensor<T, 2> grad_src) {
  POLYOP_RETURN_IF_ERROR(CheckIndptr(indptr, src.dim(0)));
  const int64_t segments = out.dim(0), channels = out.dim(1), rows = src.dim(0);
  const int64_t first = indptr[0], last = indptr[segments];
  std::fill_n(grad_src.data(), first * channels, FromFloat<T>(0));
  std::fill_n(grad_src.data() + last * channels, (rows - last) * channels, FromFloat<T>(0));
  const double of_segment = 1 + static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(segments, 1));
  context.ParallelFor(segments, GrainFor(2 + 0.4 * static_cast<double>(channels) * of_segment),
                      [&](int64_t begin, int64_t end) HWY_ATTR {
                        for (int64_t m = begin; m < end; ++m) {
                          const int64_t at = indptr[m] * channels;
                          SegmentBackward(op.reduce, src.data() + at, indptr[m + 1] - indptr[m], channels,
                                          out.data() + m * channels, grad_out.data() + m * channels,
                                          grad_src.data() + at);
                        }
                      });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(SegmentCsrBackward, SegmentCsrBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif

#include "kernels/cuda/line_scan.h"
#include "ops/cummax/cummax.h"

namespace polyop {
namespace {

template <class T>
struct Best {
  T value;
  int64_t index;
};

// Numbers compare as floats or, if they are integers, as they are.
template <class T>
POLYOP_HD auto Comparable(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return ToFloat(x);
  }
}

// Whether `later` takes the place of `earlier`: it is at least as good, or NaN.
template <bool kMin, class T>
POLYOP_HD bool Takes(T earlier, T later) {
  const auto a = Comparable(earlier), b = Comparable(later);
  if (b != b) return true;
  return kMin ? b <= a : b >= a;  // false where the earlier one is NaN
}

template <bool kMin, class T>
Status Scan(const CudaContext& cuda, const Lines& lines, const T* from, T* values, int64_t* indices) {
  return ScanLines<Best<T>>(
      cuda, lines, [=] POLYOP_HD(int64_t place, int64_t k) { return Best<T>{from[place], k}; },
      [] POLYOP_HD(const Best<T>& a, const Best<T>& b) { return Takes<kMin>(a.value, b.value) ? b : a; },
      [=] POLYOP_HD(int64_t place, const Best<T>& best) {
        values[place] = best.value;
        indices[place] = best.index;
      });
}

template <class T>
Status CumMaxCuda(const CumMax& op, const CudaContext& cuda, Tensor<const T, kAnyRank> input,
                  Tensor<T, kAnyRank> values, Tensor<int64_t, kAnyRank> indices) {
  const ScanExtents extents = ScanExtents::Of(op, input.shape());
  const Lines lines{extents.outer, extents.length, extents.inner};
  return op.mode == CumMax::Mode::kMin ? Scan<true>(cuda, lines, input.data(), values.data(), indices.data())
                                       : Scan<false>(cuda, lines, input.data(), values.data(), indices.data());
}

POLYOP_CUDA_KERNEL(CumMax, CumMaxF32, CumMaxCuda<float>);
POLYOP_CUDA_KERNEL(CumMax, CumMaxF16, CumMaxCuda<Half>);
POLYOP_CUDA_KERNEL(CumMax, CumMaxBF16, CumMaxCuda<BFloat16>);
POLYOP_CUDA_KERNEL(CumMax, CumMaxI32, CumMaxCuda<int32_t>);
POLYOP_CUDA_KERNEL(CumMax, CumMaxI64, CumMaxCuda<int64_t>);

}  // namespace
}  // namespace polyop

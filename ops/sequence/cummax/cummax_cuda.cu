// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/line_scan.h"
#include "ops/sequence/cummax/cummax.h"

namespace polyop {
namespace {

template <class T>
struct Best {
  T value;
  int64_t index;
};

// Integers are compared exactly, other types as floats.
template <class T>
POLYOP_HD auto Comparable(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return ToFloat(x);
  }
}

// Returns true if `later` replaces `earlier`: it is at least as good, or NaN.
template <bool kMin, class T>
POLYOP_HD bool Replaces(T earlier, T later) {
  const auto a = Comparable(earlier), b = Comparable(later);
  if (b != b) return true;
  return kMin ? b <= a : b >= a;  // false if the earlier value is NaN
}

template <bool kMin, class T>
Status Scan(const CudaContext& cuda, const Lines& lines, const T* from, T* values, int64_t* indices) {
  return ScanLines<Best<T>>(
      cuda, lines, [=] POLYOP_DEVICE(int64_t element, int64_t k) { return Best<T>{from[element], k}; },
      [] POLYOP_DEVICE(const Best<T>& a, const Best<T>& b) { return Replaces<kMin>(a.value, b.value) ? b : a; },
      [=] POLYOP_DEVICE(int64_t element, const Best<T>& best) {
        values[element] = best.value;
        indices[element] = best.index;
      });
}

template <class T>
Status CumMaxCuda(const CumMax& op, const CudaContext& cuda, Tensor<const T, kAnyRank> input,
                  Tensor<T, kAnyRank> values, Tensor<int64_t, kAnyRank> indices) {
  const ScanExtents extents = ScanExtents::Of(op.dim, input.shape());
  const Lines lines{extents.outer, extents.length, extents.inner};
  return op.mode == CumMax::Mode::kMin ? Scan<true>(cuda, lines, input.data(), values.data(), indices.data())
                                       : Scan<false>(cuda, lines, input.data(), values.data(), indices.data());
}

POLYOP_CUDA_KERNELS(CumMax, CumMaxCuda, float, Half, BFloat16, int32_t, int64_t);

}  // namespace
}  // namespace polyop

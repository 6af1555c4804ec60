// Softmax of a row. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_SOFTMAX_INL_H_
#undef POLYOP_KERNELS_CPU_SOFTMAX_INL_H_
#else
#define POLYOP_KERNELS_CPU_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// In place. A row without a finite maximum, or with NaN, becomes NaN.
void Softmax(float* row, int64_t count) {
  if (count == 0) return;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = count / lanes * lanes;
  const size_t rest = static_cast<size_t>(count - whole);
  auto most = hn::Set(d, -INFINITY);
  auto nan = hn::IsNaN(most);
  for (int64_t i = 0; i < whole; i += lanes) {
    const auto x = hn::LoadU(d, row + i);
    nan = hn::Or(nan, hn::IsNaN(x));
    most = hn::Max(most, x);
  }
  bool any_nan = !hn::AllFalse(d, nan);
  float greatest = hn::ReduceMax(d, most);
  for (int64_t i = whole; i < count; ++i) {
    any_nan = any_nan || std::isnan(row[i]);
    greatest = std::max(greatest, row[i]);
  }
  if (any_nan || !std::isfinite(greatest)) {
    std::fill_n(row, count, NAN);
    return;
  }
  const auto shift = hn::Set(d, greatest);
  auto sums = hn::Zero(d);
  for (int64_t i = 0; i < whole; i += lanes) {
    const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, row + i), shift));
    sums = hn::Add(sums, e);
    hn::StoreU(e, d, row + i);
  }
  if (rest > 0) {
    const auto e =
        hn::IfThenElseZero(hn::FirstN(d, rest), hn::Exp(d, hn::Sub(LoadFloatN(d, row + whole, rest), shift)));
    sums = hn::Add(sums, e);
    hn::StoreN(e, d, row + whole, rest);
  }
  const auto factor = hn::Set(d, 1.0f / hn::ReduceSum(d, sums));
  for (int64_t i = 0; i < whole; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, row + i), factor), d, row + i);
  if (rest > 0) hn::StoreN(hn::Mul(LoadFloatN(d, row + whole, rest), factor), d, row + whole, rest);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif

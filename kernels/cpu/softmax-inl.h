// Softmax of a row. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_SOFTMAX_INL_H_
#undef POLYOP_KERNELS_CPU_SOFTMAX_INL_H_
#else
#define POLYOP_KERNELS_CPU_SOFTMAX_INL_H_
#endif

#include <cmath>

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// exp(x) for x of at most 0, to 1e-7 of it; 0 below the logarithm of the least normal number, and for NaN. Half as many
// instructions as for any x.
template <class D, class V>
HWY_INLINE V ExpOfAtMostZero(D d, V x) {
  const hn::RebindToSigned<D> di;
  // x = whole * ln 2 + r. Adding 1.5 * 2^23 leaves `whole` in the sum's last bits, and once more as a number.
  const auto shift = hn::Set(d, 0x1.8p23f);
  const auto sum = hn::MulAdd(x, hn::Set(d, 1.4426950408889634f), shift);
  const auto whole = hn::Sub(sum, shift);
  auto r = hn::NegMulAdd(whole, hn::Set(d, 0x1.62e4p-1f), x);
  r = hn::NegMulAdd(whole, hn::Set(d, 0x1.7f7d1cp-20f), r);
  // The polynomial with the least greatest error where |r| is at most ln 2 / 2: 3e-9 of exp(r).
  auto p = hn::MulAdd(r, hn::Set(d, 1.381454e-3f), hn::Set(d, 8.368745e-3f));
  p = hn::MulAdd(r, p, hn::Set(d, 4.1668391e-2f));
  p = hn::MulAdd(r, p, hn::Set(d, 1.666652e-1f));
  p = hn::MulAdd(r, p, hn::Set(d, 4.9999993e-1f));
  p = hn::MulAdd(r, p, hn::Set(d, 1.0f));
  p = hn::MulAdd(r, p, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, sum));
  const auto scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, -87.3f)), scaled);
}

/// row[i] = exp(row[i] - the greatest); returns by what the terms are to be multiplied, 1 / their sum: NaN for a row
/// with NaN, or without a finite maximum; 1 for a row of none.
inline float SoftmaxTerms(float* row, int64_t count) {
  if (count == 0) return 1;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = count / lanes * lanes;
  const size_t rest = static_cast<size_t>(count - whole);
  const auto least = hn::Set(d, -INFINITY);
  const auto last = [&]
      HWY_ATTR { return hn::IfThenElse(hn::FirstN(d, rest), LoadFloatN(d, row + whole, rest), least); };

  // Several maxima and sums do not wait for each other.
  constexpr int kApart = 4;
  hn::Vec<decltype(d)> most[kApart];
  for (auto& m : most) m = least;
  int64_t i = 0;
  for (; i + kApart * lanes <= whole; i += kApart * lanes) {
    for (int k = 0; k < kApart; ++k) most[k] = hn::Max(most[k], hn::LoadU(d, row + i + k * lanes));
  }
  for (; i < whole; i += lanes) most[0] = hn::Max(most[0], hn::LoadU(d, row + i));
  if (rest > 0) most[1] = hn::Max(most[1], last());
  const auto shift = hn::Set(d, hn::ReduceMax(d, hn::Max(hn::Max(most[0], most[1]), hn::Max(most[2], most[3]))));

  // The exp of NaN is a number. What is NaN here was so, or is as infinite as the greatest.
  auto nan = hn::MaskFalse(d);
  auto sums = hn::Zero(d);
  const auto term = [&](auto x) HWY_ATTR {
    const auto shifted = hn::Sub(x, shift);
    nan = hn::Or(nan, hn::IsNaN(shifted));
    const auto e = ExpOfAtMostZero(d, shifted);
    sums = hn::Add(sums, e);
    return e;
  };
  for (i = 0; i < whole; i += lanes) hn::StoreU(term(hn::LoadU(d, row + i)), d, row + i);
  if (rest > 0) hn::StoreN(term(last()), d, row + whole, rest);
  return hn::AllFalse(d, nan) ? 1.0f / hn::ReduceSum(d, sums) : NAN;
}

/// In place. A row with NaN, or without a finite maximum, becomes NaN.
inline void Softmax(float* row, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float factor = SoftmaxTerms(row, count);
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, row + i), f), d, row + i);
  for (; i < count; ++i) row[i] *= factor;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif

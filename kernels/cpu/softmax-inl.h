// SPDX-License-Identifier: Apache-2.0
// Softmax of a row. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_SOFTMAX_INL_H_
#undef POLYOP_KERNELS_CPU_SOFTMAX_INL_H_
#else
#define POLYOP_KERNELS_CPU_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Returns exp(x) for x <= 0 with a relative error of 1e-7; 0 below the logarithm of the smallest normal number and for
// NaN. Needs half as many instructions as a general exp.
template <class D, class V>
HWY_INLINE V ExpOfNonPositive(D d, V x) {
  const hn::RebindToSigned<D> di;
  // x = whole * ln 2 + r. Adding 1.5 * 2^23 puts `whole` into the sum's lowest bits; subtracting it returns it as
  // float.
  const auto shift = hn::Set(d, 0x1.8p23f);
  const auto sum = hn::MulAdd(x, hn::Set(d, 1.4426950408889634f), shift);
  const auto whole = hn::Sub(sum, shift);
  auto r = hn::NegMulAdd(whole, hn::Set(d, 0x1.62e4p-1f), x);
  r = hn::NegMulAdd(whole, hn::Set(d, 0x1.7f7d1cp-20f), r);
  // The minimax polynomial for |r| <= ln 2 / 2; its relative error is 3e-9.
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

/// Sets row[i] to exp(row[i] - max) and returns the factor that normalises the terms, 1 / their sum: NaN if the row has
/// NaN or no finite maximum, 1 if it is empty.
inline float SoftmaxTerms(float* row, int64_t count) {
  if (count == 0) return 1;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = count / lanes * lanes;
  const size_t rest = static_cast<size_t>(count - whole);
  const auto minus_infinity = hn::Set(d, -INFINITY);
  const auto last = [&]
      HWY_ATTR { return hn::IfThenElse(hn::FirstN(d, rest), LoadFloatN(d, row + whole, rest), minus_infinity); };

  // Independent maxima hide latency.
  constexpr int kChains = 4;
  hn::Vec<decltype(d)> maxima[kChains];
  for (auto& m : maxima) m = minus_infinity;
  int64_t i = 0;
  for (; i + kChains * lanes <= whole; i += kChains * lanes) {
    for (int k = 0; k < kChains; ++k) maxima[k] = hn::Max(maxima[k], hn::LoadU(d, row + i + k * lanes));
  }
  for (; i < whole; i += lanes) maxima[0] = hn::Max(maxima[0], hn::LoadU(d, row + i));
  if (rest > 0) maxima[1] = hn::Max(maxima[1], last());
  const auto shift =
      hn::Set(d, hn::ReduceMax(d, hn::Max(hn::Max(maxima[0], maxima[1]), hn::Max(maxima[2], maxima[3]))));

  // ExpOfNonPositive returns 0 for NaN, so NaN is tracked here: it is in the row, or is the difference of infinities.
  auto nan = hn::MaskFalse(d);
  auto sums = hn::Zero(d);
  const auto term = [&](auto x) HWY_ATTR {
    const auto shifted = hn::Sub(x, shift);
    nan = hn::Or(nan, hn::IsNaN(shifted));
    const auto e = ExpOfNonPositive(d, shifted);
    sums = hn::Add(sums, e);
    return e;
  };
  for (i = 0; i < whole; i += lanes) hn::StoreU(term(hn::LoadU(d, row + i)), d, row + i);
  if (rest > 0) hn::StoreN(term(last()), d, row + whole, rest);
  return hn::AllFalse(d, nan) ? 1.0f / hn::ReduceSum(d, sums) : NAN;
}

/// Computes the softmax in place. A row with NaN or without a finite maximum becomes NaN.
inline void Softmax(float* row, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float factor = SoftmaxTerms(row, count);
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, row + i), f), d, row + i);
  for (; i < count; ++i) row[i] *= factor;
}

/// Returns the gradient of the largest term, or 0 if it is not finite.
inline float GradOfLargest(const float* terms, const float* grad, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto largest = hn::Set(d, -1.0f), grads = hn::Zero(d);
  for (int64_t i = 0; i < count; i += lanes) {
    const auto some = static_cast<size_t>(std::min(lanes, count - i));
    const auto term = LoadFloatN(d, terms + i, some);
    const auto larger = hn::And(hn::FirstN(d, some), hn::Gt(term, largest));
    largest = hn::IfThenElse(larger, term, largest);
    grads = hn::IfThenElse(larger, LoadFloatN(d, grad + i, some), grads);
  }
  const auto is_largest = hn::Eq(largest, hn::Set(d, hn::ReduceMax(d, largest)));
  const float found = hn::ReduceMax(d, hn::IfThenElse(is_largest, grads, hn::Set(d, -INFINITY)));
  return std::isfinite(found) ? found : 0;
}

/// Changes `grad`, the gradients of a softmax's results `terms`, to those of its inputs.
inline void SoftmaxBackward(const float* terms, int64_t count, float* grad) {
  if (count == 0) return;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = count / lanes * lanes;
  // Relative to the largest term's, the gradients do not cancel where that term is nearly 1.
  const float shift = GradOfLargest(terms, grad, count);
  const auto shifts = hn::Set(d, shift);
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i < whole; i += lanes)
    sums = hn::MulAdd(hn::LoadU(d, terms + i), hn::Sub(hn::LoadU(d, grad + i), shifts), sums);
  float mean = hn::ReduceSum(d, sums);
  for (; i < count; ++i) mean += terms[i] * (grad[i] - shift);
  const auto means = hn::Set(d, mean);
  for (i = 0; i < whole; i += lanes) {
    const auto centred = hn::Sub(hn::Sub(hn::LoadU(d, grad + i), shifts), means);
    hn::StoreU(hn::Mul(hn::LoadU(d, terms + i), centred), d, grad + i);
  }
  for (; i < count; ++i) grad[i] = terms[i] * (grad[i] - shift - mean);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif

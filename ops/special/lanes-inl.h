// SPDX-License-Identifier: Apache-2.0
// Special functions of the lanes of vectors. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_SPECIAL_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SPECIAL_LANES_INL_H_
#undef POLYOP_OPS_SPECIAL_LANES_INL_H_
#else
#define POLYOP_OPS_SPECIAL_LANES_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "core/host_device.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {
namespace special {

using NumberTag = hn::ScalableTag<double>;

/// The lanes of two vectors: the computation of one fills the waits of the other.
struct SpecialLanes {
  hn::Vec<NumberTag> a, b;

  SpecialLanes() = default;
  HWY_INLINE explicit SpecialLanes(double x) : a(hn::Set(NumberTag(), x)), b(a) {}
  HWY_INLINE SpecialLanes(hn::Vec<NumberTag> first, hn::Vec<NumberTag> second) : a(first), b(second) {}

  static constexpr int64_t kMaxCount = 2 * static_cast<int64_t>(hn::MaxLanes(NumberTag()));
  static int64_t Count() { return 2 * static_cast<int64_t>(hn::Lanes(NumberTag())); }
  static HWY_INLINE SpecialLanes Load(const double* from) {
    return {hn::LoadU(NumberTag(), from), hn::LoadU(NumberTag(), from + Count() / 2)};
  }
  HWY_INLINE void Store(double* to) const {
    hn::StoreU(a, NumberTag(), to);
    hn::StoreU(b, NumberTag(), to + Count() / 2);
  }
};
using L = SpecialLanes;

struct LanesMask {
  hn::Mask<NumberTag> a, b;
};

HWY_INLINE L operator+(L x, L y) { return {hn::Add(x.a, y.a), hn::Add(x.b, y.b)}; }
HWY_INLINE L operator-(L x, L y) { return {hn::Sub(x.a, y.a), hn::Sub(x.b, y.b)}; }
HWY_INLINE L operator*(L x, L y) { return {hn::Mul(x.a, y.a), hn::Mul(x.b, y.b)}; }
HWY_INLINE L operator/(L x, L y) { return {hn::Div(x.a, y.a), hn::Div(x.b, y.b)}; }
HWY_INLINE L operator-(L x) { return {hn::Neg(x.a), hn::Neg(x.b)}; }
HWY_INLINE LanesMask operator<(L x, L y) { return {hn::Lt(x.a, y.a), hn::Lt(x.b, y.b)}; }
HWY_INLINE LanesMask operator<=(L x, L y) { return {hn::Le(x.a, y.a), hn::Le(x.b, y.b)}; }
HWY_INLINE LanesMask operator>(L x, L y) { return y < x; }
HWY_INLINE LanesMask operator>=(L x, L y) { return y <= x; }
HWY_INLINE LanesMask operator==(L x, L y) { return {hn::Eq(x.a, y.a), hn::Eq(x.b, y.b)}; }
HWY_INLINE L Select(LanesMask mask, L yes, L no) {
  return {hn::IfThenElse(mask.a, yes.a, no.a), hn::IfThenElse(mask.b, yes.b, no.b)};
}
HWY_INLINE bool Any(LanesMask mask) { return !hn::AllFalse(NumberTag(), hn::Or(mask.a, mask.b)); }
HWY_INLINE L Abs(L x) { return {hn::Abs(x.a), hn::Abs(x.b)}; }
HWY_INLINE L Floor(L x) { return {hn::Floor(x.a), hn::Floor(x.b)}; }
HWY_INLINE L Round(L x) { return {hn::Round(x.a), hn::Round(x.b)}; }
HWY_INLINE L SquareRoot(L x) { return {hn::Sqrt(x.a), hn::Sqrt(x.b)}; }
HWY_INLINE L MultiplyAdd(L x, L y, L z) { return {hn::MulAdd(x.a, y.a, z.a), hn::MulAdd(x.b, y.b, z.b)}; }
HWY_INLINE L CopySign(L x, L sign) { return {hn::CopySign(x.a, sign.a), hn::CopySign(x.b, sign.b)}; }

/// Calls a function for each lane.
template <class Function>
HWY_INLINE L ForEachLane(L x, const Function& function) {
  HWY_ALIGN double lanes[L::kMaxCount];
  x.Store(lanes);
  for (int64_t i = 0; i < L::Count(); ++i) lanes[i] = function(lanes[i]);
  return L::Load(lanes);
}
/// Returns x y + z, rounded once on every instruction set.
HWY_INLINE L FusedMultiplyAdd(L x, L y, L z) {
  if constexpr (HWY_NATIVE_FMA) return MultiplyAdd(x, y, z);
  HWY_ALIGN double xs[L::kMaxCount];
  HWY_ALIGN double ys[L::kMaxCount];
  HWY_ALIGN double zs[L::kMaxCount];
  x.Store(xs);
  y.Store(ys);
  z.Store(zs);
  for (int64_t i = 0; i < L::Count(); ++i) zs[i] = std::fma(xs[i], ys[i], zs[i]);
  return L::Load(zs);
}
HWY_INLINE L Log1p(L x) {
  return ForEachLane(x, [](double y) { return std::log1p(y); });
}

using BitsTag = hn::RebindToSigned<NumberTag>;
using NumberVec = hn::Vec<NumberTag>;
using BitsVec = hn::Vec<BitsTag>;

// A number plus this has the number's nearest integer in its lowest bits, up to 2^51.
constexpr double kToInteger = 0x1.8p52;

HWY_INLINE NumberVec Number(double x) { return hn::Set(NumberTag(), x); }
HWY_INLINE BitsVec Bits(int64_t x) { return hn::Set(BitsTag(), x); }
HWY_INLINE BitsVec BitsOf(NumberVec x) { return hn::BitCast(BitsTag(), x); }
HWY_INLINE NumberVec FromBits(BitsVec x) { return hn::BitCast(NumberTag(), x); }
HWY_INLINE NumberVec ToNumber(BitsVec k) {
  return hn::Sub(FromBits(hn::Add(k, BitsOf(Number(kToInteger)))), Number(kToInteger));
}

/// Returns c[0] + c[1] x + ….
template <int N>
HWY_INLINE NumberVec Polynomial(const double (&c)[N], NumberVec x) {
  NumberVec sum = Number(c[N - 1]);
  for (int k = N - 2; k >= 0; --k) sum = hn::MulAdd(sum, x, Number(c[k]));
  return sum;
}

// log(x) = k log 2 + log(1 + f), with 1 + f in [sqrt(1/2), sqrt(2)) and s = f / (2 + f).
HWY_INLINE NumberVec LogOf(NumberVec x) {
  constexpr double kOdd[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                             2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const auto tiny = hn::Lt(x, Number(0x1p-1022));
  const BitsVec bits = BitsOf(hn::IfThenElse(tiny, hn::Mul(x, Number(0x1p54)), x));
  const BitsVec whole = hn::ShiftRight<52>(hn::Sub(bits, BitsOf(Number(0.70710678118654752440))));
  const NumberVec f = hn::Sub(FromBits(hn::Sub(bits, hn::ShiftLeft<52>(whole))), Number(1));
  const NumberVec k = hn::Sub(ToNumber(whole), hn::IfThenElseZero(tiny, Number(54)));
  const NumberVec s = hn::Div(f, hn::Add(f, Number(2))), z = hn::Mul(s, s), half = hn::Mul(Number(0.5), hn::Mul(f, f));
  const NumberVec sum = hn::Mul(s, hn::MulAdd(z, Polynomial(kOdd, z), half));
  const NumberVec low = hn::MulAdd(k, Number(1.90821492927058770002e-10), sum);
  NumberVec result = hn::MulSub(k, Number(6.93147180369123816490e-01), hn::Sub(hn::Sub(half, low), f));
  result = hn::IfThenElse(hn::Gt(x, Number(0)), result,
                          hn::IfThenElse(hn::Eq(x, Number(0)), Number(-__builtin_huge_val()), Number(NAN)));
  return hn::IfThenElse(hn::Eq(x, Number(__builtin_huge_val())), x, result);
}

// exp(x) = 2^k exp(r), |r| <= log(2) / 2, by the power series.
HWY_INLINE NumberVec ExpOf(NumberVec x) {
  constexpr double kFactorials[] = {
      1,          1,           1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const NumberVec clamped = hn::Min(hn::Max(x, Number(-746)), Number(710));
  const NumberVec shifted = hn::Add(hn::Mul(clamped, Number(1.44269504088896340736)), Number(kToInteger));
  const NumberVec k = hn::Sub(shifted, Number(kToInteger));
  const BitsVec whole = hn::Sub(BitsOf(shifted), BitsOf(Number(kToInteger))), half = hn::ShiftRight<1>(whole);
  NumberVec r = hn::NegMulAdd(k, Number(6.93147180369123816490e-01), clamped);
  r = hn::NegMulAdd(k, Number(1.90821492927058770002e-10), r);
  const auto power = [](BitsVec e) HWY_ATTR { return FromBits(hn::ShiftLeft<52>(hn::Add(e, Bits(1023)))); };
  const NumberVec result = hn::Mul(hn::Mul(Polynomial(kFactorials, r), power(half)), power(hn::Sub(whole, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// x = k pi / 2 + r, |r| <= pi / 4, of |x| up to 1e6; then the power series.
HWY_INLINE void SinCosOf(NumberVec x, NumberVec& sine, NumberVec& cosine) {
  constexpr double kSine[] = {1,
                              -1.0 / 6,
                              1.0 / 120,
                              -1.0 / 5040,
                              1.0 / 362880,
                              -1.0 / 39916800,
                              1.0 / 6227020800,
                              -1.0 / 1307674368000,
                              1.0 / 355687428096000};
  constexpr double kCosine[] = {1,
                                -1.0 / 2,
                                1.0 / 24,
                                -1.0 / 720,
                                1.0 / 40320,
                                -1.0 / 3628800,
                                1.0 / 479001600,
                                -1.0 / 87178291200,
                                1.0 / 20922789888000};
  const NumberVec shifted = hn::Add(hn::Mul(x, Number(0.63661977236758134308)), Number(kToInteger));
  const NumberVec k = hn::Sub(shifted, Number(kToInteger));
  const BitsVec quarter = BitsOf(shifted);
  NumberVec r = hn::NegMulAdd(k, Number(1.57079632673412561417e+00), x);
  r = hn::NegMulAdd(k, Number(6.07710050630396597660e-11), r);
  r = hn::NegMulAdd(k, Number(2.02226624879595063154e-21), r);
  const NumberVec square = hn::Mul(r, r);
  const NumberVec s = hn::Mul(r, Polynomial(kSine, square)), c = Polynomial(kCosine, square);
  const auto odd = hn::RebindMask(NumberTag(), hn::Eq(hn::And(quarter, Bits(1)), Bits(1)));
  const auto negative = [](BitsVec q) HWY_ATTR { return FromBits(hn::ShiftLeft<62>(hn::And(q, Bits(2)))); };
  sine = hn::Xor(hn::IfThenElse(odd, c, s), negative(quarter));
  cosine = hn::Xor(hn::IfThenElse(odd, s, c), negative(hn::Add(quarter, Bits(1))));
}

HWY_INLINE L Exp(L x) { return {ExpOf(x.a), ExpOf(x.b)}; }
HWY_INLINE L Log(L x) { return {LogOf(x.a), LogOf(x.b)}; }
HWY_INLINE void SinCos(L x, L& sine, L& cosine) {
  SinCosOf(x.a, sine.a, cosine.a);
  SinCosOf(x.b, sine.b, cosine.b);
  const LanesMask large = Abs(x) > L(1e6);
  if (!Any(large)) return;
  sine = Select(large, ForEachLane(x, [](double y) { return std::sin(y); }), sine);
  cosine = Select(large, ForEachLane(x, [](double y) { return std::cos(y); }), cosine);
}
HWY_INLINE L Sin(L x) {
  L sine, cosine;
  SinCos(x, sine, cosine);
  return sine;
}

#include "ops/special/unary.h"
static_assert(FullArithmetic<SpecialLanes>);

// After it, whose constants it uses:
#include "ops/special/polynomials.h"

}  // namespace special
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif

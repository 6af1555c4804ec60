// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/special/special_binary/special_binary_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/special/lanes-inl.h"
#include "ops/special/special_binary/binary_functions.h"
#include "ops/special/special_binary/special_binary.h"

#ifndef POLYOP_OPS_SPECIAL_BINARY_ONCE_
#define POLYOP_OPS_SPECIAL_BINARY_ONCE_
namespace polyop {
namespace {

template <class T>
void ComputeOneByOne(const SpecialBinary& op, const T* a, const T* b, int64_t count, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = special::Binary(op, a[i], b[i]);
}

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_SPECIAL_BINARY_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Returns sqrt(a^2 + b^2), with a factor that keeps the squares in range.
template <class V>
HWY_INLINE V LengthOfDoubles(V a, V b) {
  const hn::DFromV<V> d;
  a = hn::Abs(a);
  b = hn::Abs(b);
  const auto longer = hn::Max(a, b), inf = hn::Inf(d);
  auto factor = hn::IfThenElse(hn::Gt(longer, hn::Set(d, 0x1p500)), hn::Set(d, 0x1p-600), hn::Set(d, 1.0));
  factor = hn::IfThenElse(hn::Lt(longer, hn::Set(d, 0x1p-500)), hn::Set(d, 0x1p600), factor);
  const auto x = hn::Mul(a, factor), y = hn::Mul(b, factor);
  const auto length = hn::Div(hn::Sqrt(hn::MulAdd(x, x, hn::Mul(y, y))), factor);
  return hn::IfThenElse(hn::Or(hn::Eq(a, inf), hn::Eq(b, inf)), inf, length);
}

// Each function returns the results of a vector of pairs.
struct LengthOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    const hn::DFromV<V> d;
    if constexpr (sizeof(hn::TFromD<decltype(d)>) == sizeof(double)) {
      return LengthOfDoubles(a, b);
    } else {  // the squares of floats are exact in double precision
      const hn::RepartitionToWide<decltype(d)> wide;
      const hn::Half<decltype(d)> half;
      const auto part = [&](auto x, auto y)
                            HWY_ATTR { return hn::DemoteTo(half, hn::Sqrt(hn::MulAdd(x, x, hn::Mul(y, y)))); };
      const auto length = hn::Combine(d, part(hn::PromoteUpperTo(wide, a), hn::PromoteUpperTo(wide, b)),
                                      part(hn::PromoteLowerTo(wide, a), hn::PromoteLowerTo(wide, b)));
      const auto inf = hn::Inf(d);
      return hn::IfThenElse(hn::Or(hn::Eq(hn::Abs(a), inf), hn::Eq(hn::Abs(b), inf)), inf, length);
    }
  }
};

struct NextAfter {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    const hn::DFromV<V> d;
    const hn::RebindToSigned<decltype(d)> di;
    // The bits of numbers of one sign are integers of the same order as their sizes.
    const auto bits = hn::BitCast(di, a), one = hn::Set(di, 1);
    const auto grows = hn::Lt(hn::Xor(hn::VecFromMask(di, hn::RebindMask(di, hn::Gt(b, a))), bits), hn::Zero(di));
    auto moved = hn::BitCast(d, hn::IfThenElse(grows, hn::Add(bits, one), hn::Sub(bits, one)));
    moved = hn::IfThenElse(hn::Eq(a, hn::Zero(d)), hn::CopySign(hn::BitCast(d, one), b), moved);
    moved = hn::IfThenElse(hn::Eq(a, b), b, moved);
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::NaN(d), moved);
  }
};

struct SignOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::CopySign(a, b);
  }
};

struct Remainder {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    const hn::DFromV<V> d;
    using T = hn::TFromD<decltype(d)>;
#if HWY_NATIVE_FMA
    // Up to this size, the rounded quotient is at most 1 too large, so that the fused product is exact.
    const auto limit = hn::Set(d, sizeof(T) == sizeof(float) ? T{0x1p22} : static_cast<T>(0x1p51));
    const auto x = hn::Abs(a), y = hn::Abs(b), quotient = hn::Div(x, y);
    if (HWY_LIKELY(hn::AllTrue(d, hn::And(hn::Lt(quotient, limit), hn::Lt(y, hn::Inf(d)))))) {
      auto rest = hn::NegMulAdd(hn::Trunc(quotient), y, x);
      rest = hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Add(rest, y), rest);
      return hn::CopySign(rest, a);
    }
#endif
    HWY_ALIGN T first[hn::MaxLanes(d)];
    HWY_ALIGN T second[hn::MaxLanes(d)];
    hn::Store(a, d, first);
    hn::Store(b, d, second);
    ComputeOneByOne(SpecialBinary{.function = SpecialBinary::Function::kElementary, .variant = SpecialBinary::kFmod},
                    first, second, static_cast<int64_t>(hn::Lanes(d)), first);
    return hn::Load(d, first);
  }
};

struct LogOfSumOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    const hn::DFromV<V> d;
    using T = hn::TFromD<decltype(d)>;
    // Beyond this, the exponential does not count. Equal infinities have no difference.
    const auto limit = hn::Set(d, sizeof(T) == sizeof(float) ? T{88} : T{708});
    const auto distance = hn::IfThenZeroElse(hn::Eq(a, b), hn::Min(hn::Abs(hn::Sub(a, b)), limit));
    const auto sum = hn::Add(hn::Max(a, b), hn::Log1p(d, hn::Exp(d, hn::Neg(distance))));
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::NaN(d), sum);
  }
};

struct ProductWithLog {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    const hn::DFromV<V> d;
    const auto zero = hn::Zero(d), inf = hn::Inf(d);
    const auto inside = hn::And(hn::Gt(b, zero), hn::Lt(b, inf));
    const auto log = hn::Log(d, hn::IfThenElse(inside, b, hn::Set(d, hn::TFromD<decltype(d)>{1})));
    const auto outside = hn::IfThenElse(hn::Eq(b, zero), hn::Neg(inf), hn::IfThenElse(hn::Eq(b, inf), b, hn::NaN(d)));
    const auto product = hn::Mul(a, hn::IfThenElse(inside, log, outside));
    return hn::IfThenElse(hn::AndNot(hn::IsNaN(b), hn::Eq(a, zero)), zero, product);
  }
};

struct AngleOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    const hn::DFromV<V> d;
    const auto zero = hn::Zero(d), pi = hn::Set(d, static_cast<hn::TFromD<decltype(d)>>(3.14159265358979323846));
    const auto along = hn::CopySign(hn::IfNegativeThenElse(b, pi, zero), a);  // Highway takes b = -0 for 0
    return hn::IfThenElse(hn::AndNot(hn::IsNaN(b), hn::Eq(a, zero)), along, hn::Atan2(d, a, b));
  }
};

template <class F, class T>
void ComputeVectors(const T* a, const T* b, int64_t count, T* y) {
  const hn::ScalableTag<T> d;
  const F function;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(function(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  const auto rest = static_cast<size_t>(count - i);
  if (rest > 0) {
    const auto ones = hn::Set(d, T{1});
    hn::StoreN(function(hn::LoadNOr(ones, d, a + i, rest), hn::LoadNOr(ones, d, b + i, rest)), d, y + i, rest);
  }
}

// The limits of the arguments that IgammaLanes accepts.
constexpr float kMaxShape = 500, kMaxArgument = 1000;

// Returns the sum of x^k / (a (a + 1) … (a + k)).
HWY_INLINE special::L GammaSeries(special::L a, special::L x) {
  using special::L;
  constexpr int kMaxSteps = 200;
  const L square = x * x;
  L term = L(1) / a, sum = term, next = a + L(1);
  for (int step = 0; step < kMaxSteps && special::Any(term > sum * L(0x1p-44)); ++step) {
    for (int pair = 0; pair < 2; ++pair) {  // a division for two terms
      const L after = next + L(1), ratio = term / (next * after);
      sum = sum + ratio * special::MultiplyAdd(x, after, square);
      term = ratio * square;
      next = after + L(1);
    }
  }
  return sum;
}

// Returns the continued fraction of the upper part by the recurrences of its numerators and denominators.
HWY_INLINE special::L GammaFraction(special::L a, special::L x) {
  using special::L;
  constexpr int kMaxSteps = 100, kTerms = 4;
  L b = x + L(1) - a, numerator_before = L(0), numerator = L(1), denominator_before = L(1), denominator = b;
  L fraction = numerator / denominator, before = L(0);
  for (int step = 0, k = 1; step < kMaxSteps; ++step) {
    if (!special::Any(special::Abs(fraction - before) > fraction * L(0x1p-44))) break;
    before = fraction;
    for (int term = 0; term < kTerms; ++term, ++k) {
      const L number(static_cast<double>(k)), factor = number * (a - number);
      b = b + L(2);
      const L numerator_after = special::MultiplyAdd(b, numerator, factor * numerator_before);
      const L denominator_after = special::MultiplyAdd(b, denominator, factor * denominator_before);
      numerator_before = numerator;
      numerator = numerator_after;
      denominator_before = denominator;
      denominator = denominator_after;
    }
    const L scale = L(1) / denominator;
    fraction = numerator * scale;
    numerator_before = numerator_before * scale;
    numerator = fraction;
    denominator_before = denominator_before * scale;
    denominator = L(1);
  }
  return fraction;
}

// Returns an incomplete gamma function of 0 < a <= kMaxShape and 0 < x <= kMaxArgument, as exact as float needs.
HWY_NOINLINE special::L IgammaLanes(special::L a, special::L x, bool upper) {
  using special::L;
  const auto is_series = x < a + L(1);
  const L density = special::Exp(a * special::Log(x) - x - special::LogGammaAbove(a));
  // The other lanes get arguments for which these end soon.
  const L lower = special::Any(is_series) ? density * GammaSeries(a, special::Select(is_series, x, L(0))) : L(0);
  const L above = density * GammaFraction(special::Select(is_series, L(1), a), special::Select(is_series, L(1e4), x));
  const L result =
      upper ? special::Select(is_series, L(1) - lower, above) : special::Select(is_series, lower, L(1) - above);
  return special::Select(result < L(0), L(0), special::Select(result > L(1), L(1), result));
}

template <bool kUpper>
void ComputeIgamma(const float* a, const float* x, int64_t count, float* y) {
  using special::L;
  const int64_t lanes = L::Count();
  HWY_ALIGN double shapes[L::kMaxCount];
  HWY_ALIGN double arguments[L::kMaxCount];
  for (int64_t i = 0; i < count; i += lanes) {
    const int64_t here = std::min(lanes, count - i);
    const auto fits = [=](int64_t k) {
      return a[i + k] > 0 && a[i + k] <= kMaxShape && x[i + k] > 0 && x[i + k] <= kMaxArgument;
    };
    for (int64_t k = 0; k < lanes; ++k) {
      const bool used = k < here && fits(k);
      shapes[k] = used ? static_cast<double>(a[i + k]) : 1;
      arguments[k] = used ? static_cast<double>(x[i + k]) : 1;
    }
    IgammaLanes(L::Load(shapes), L::Load(arguments), kUpper).Store(shapes);
    for (int64_t k = 0; k < here; ++k) {
      y[i + k] =
          static_cast<float>(HWY_LIKELY(fits(k)) ? shapes[k] : polyop::special::Igamma(a[i + k], x[i + k], kUpper));
    }
  }
}

template <class Terms>
struct RecurrenceOf {
  HWY_INLINE special::L operator()(special::L x, special::L degree) const {
    return special::ByRecurrence<Terms>(x, degree);
  }
};

template <special::Chebyshev kKind>
struct ChebyshevOf {
  HWY_INLINE special::L operator()(special::L x, special::L degree) const {
    return special::ChebyshevPolynomial<kKind>(x, degree);
  }
};

// Computes polynomials of degrees up to the limit, in double precision.
template <class F, int64_t kMax, class T>
HWY_NOINLINE void ComputePolynomials(const T* a, const T* b, int64_t count, T* y) {
  using special::L;
  const F function;
  const int64_t lanes = L::Count();
  HWY_ALIGN double arguments[L::kMaxCount] = {};
  HWY_ALIGN double degrees[L::kMaxCount] = {};
  for (int64_t i = 0; i < count; i += lanes) {
    const int64_t here = std::min(lanes, count - i);
    for (int64_t k = 0; k < here; ++k) {
      arguments[k] = static_cast<double>(a[i + k]);
      degrees[k] = static_cast<double>(b[i + k]);
    }
    const L x = L::Load(arguments), given = L::Load(degrees), size = special::Floor(special::Abs(given));
    const L degree = special::CopySign(size, given), limit(static_cast<double>(kMax)), nan(NAN);
    const L result = function(x, special::Select(degree <= limit, degree, L(0)));
    special::Select(degree <= limit, special::Select(x == x, result, nan), nan).Store(arguments);
    for (int64_t k = 0; k < here; ++k) y[i + k] = static_cast<T>(arguments[k]);
  }
}

template <class T>
using Computes = void (*)(const T*, const T*, int64_t, T*);

// Returns the function in vectors, or null if there is only one of single numbers.
template <class T>
Computes<T> InVectors(const SpecialBinary& op) {
  if constexpr (std::is_same_v<T, float>) {
    if (op.function == SpecialBinary::Function::kIgamma) return ComputeIgamma<false>;
    if (op.function == SpecialBinary::Function::kIgammac) return ComputeIgamma<true>;
  }
  constexpr auto kHermite = static_cast<int64_t>(polyop::special::kMaxHermiteDegree);
  constexpr auto kDegree = static_cast<int64_t>(polyop::special::kMaxDegree);
  constexpr auto kChebyshev = static_cast<int64_t>(polyop::special::kMaxChebyshevDegree);
  using enum special::Chebyshev;
  switch (op.function) {
    case SpecialBinary::Function::kHermiteH:
      return ComputePolynomials<RecurrenceOf<special::HermiteHTerms>, kHermite, T>;
    case SpecialBinary::Function::kHermiteHe:
      return ComputePolynomials<RecurrenceOf<special::HermiteHeTerms>, kHermite, T>;
    case SpecialBinary::Function::kLaguerre:
      return ComputePolynomials<RecurrenceOf<special::LaguerreTerms>, kDegree, T>;
    case SpecialBinary::Function::kLegendre:
      return ComputePolynomials<RecurrenceOf<special::LegendreTerms>, kDegree, T>;
    case SpecialBinary::Function::kElementary: break;
    default: return nullptr;
  }
  switch (op.variant) {
    case SpecialBinary::kHypot: return ComputeVectors<LengthOf, T>;
    case SpecialBinary::kNextafter: return ComputeVectors<NextAfter, T>;
    case SpecialBinary::kCopysign: return ComputeVectors<SignOf, T>;
    case SpecialBinary::kFmod: return ComputeVectors<Remainder, T>;
    case SpecialBinary::kLogaddexp: return ComputeVectors<LogOfSumOf, T>;
    case SpecialBinary::kXlogy: return ComputeVectors<ProductWithLog, T>;
    case SpecialBinary::kAtan2: return ComputeVectors<AngleOf, T>;
    case SpecialBinary::kChebyshevT: return ComputePolynomials<ChebyshevOf<kT>, kChebyshev, T>;
    case SpecialBinary::kChebyshevU: return ComputePolynomials<ChebyshevOf<kU>, kChebyshev, T>;
    case SpecialBinary::kChebyshevV: return ComputePolynomials<ChebyshevOf<kV>, kChebyshev, T>;
    default: return ComputePolynomials<ChebyshevOf<kW>, kChebyshev, T>;
  }
}

// Returns the time of a pair, about.
double NanosecondsOf(const SpecialBinary& op) {
  const bool elementary = op.function == SpecialBinary::Function::kElementary;
  return elementary && op.variant < SpecialBinary::kChebyshevT ? 1 : elementary ? 10 : 100;
}

template <class T>
Status SpecialBinaryCpu(const SpecialBinary& op, const Context& context, Tensor<const T, kAnyRank> a,
                        Tensor<const T, kAnyRank> b, Tensor<T, kAnyRank> y) {
  const T *const first = a.data(), *const second = b.data();
  T* const to = y.data();
  const Computes<T> vectors = InVectors<T>(op);
  context.ParallelFor(y.size(), GrainFor(NanosecondsOf(op)), [&](int64_t begin, int64_t end) {
    if (vectors != nullptr) return vectors(first + begin, second + begin, end - begin, to + begin);
    ComputeOneByOne(op, first + begin, second + begin, end - begin, to + begin);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(SpecialBinary, SpecialBinaryCpu, float, double);
}  // namespace polyop
#endif

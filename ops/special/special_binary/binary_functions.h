// SPDX-License-Identifier: Apache-2.0
// The functions of one pair of numbers, which CPU and GPU share. Their time is bounded for all arguments.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"
#include "ops/special/numbers.h"
#include "ops/special/special_binary/special_binary.h"

namespace polyop::special {

/// Returns x - 1 - log(x), without cancellation near 1.
POLYOP_HD inline double AboveLog(double x) {
  const double m = x - 1;
  if (std::fabs(m) > 0.5) return m - std::log(x);
  // log(1 + m) = 2 atanh(r), r = m / (2 + m)
  const double r = m / (2 + m), square = r * r;
  double sum = 0;
  for (int k = 20; k > 0; --k) sum = (sum + 1.0 / (2 * k + 1)) * square;
  return r * (m - 2 * sum);
}

/// Returns x^a exp(-x) / gamma(a).
POLYOP_HD inline double GammaDensity(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - LogGammaAbove(a));
  const double inverse = 1 / a, square = inverse * inverse;
  const double stirling =
      inverse *
      (1.0 / 12 -
       square *
           (1.0 / 360 - square * (1.0 / 1260 - square * (1.0 / 1680 - square * (1.0 / 1188 - square * 691 / 360360)))));
  return std::sqrt(a / (2 * kPi)) * std::exp(-a * AboveLog(x / a) - stirling);
}

/// The lower part of the regularized incomplete gamma function, or the upper one.
struct GammaParts {
  double lower, upper;
};

/// Temme's uniform asymptotic expansion.
POLYOP_HD inline GammaParts LargeGamma(double a, double x) {
  const double m = x / a - 1, excess = AboveLog(x / a), eta = std::copysign(std::sqrt(2 * excess), m);
  double first = 0, second = 0;
  if (std::fabs(m) < 0.01) {
    first =
        -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta * (1.0 / 864 + eta * (1.0 / 2835 - eta * 139 / 777600))));
    second = -1.0 / 540 + eta * (-1.0 / 288 + eta * (1.0 / 378 - eta * 77 / 77760));
  } else {
    first = 1 / m - 1 / eta;
    second = 1 / (eta * eta * eta) - 1 / (m * m * m) - 1 / (m * m) - 1 / (12 * m);
  }
  const double rest = std::exp(-a * excess) / std::sqrt(2 * kPi * a) * (first + second / a);
  const double middle = eta * std::sqrt(a / 2);
  return {0.5 * std::erfc(-middle) - rest, 0.5 * std::erfc(middle) + rest};
}

/// Returns the upper part for a < 0.5 and x <= 1.1, which may be tiny: without the difference from the lower one.
POLYOP_HD inline double UpperGammaOfSmall(double a, double x) {
  const double exponent = a * std::log(x) - LogGammaOfOnePlus(a);
  double factor = 1, sum = 0;
  for (int n = 1; n < 30; ++n) {
    factor *= -x / n;
    sum += factor / (a + n);
  }
  return std::fmin(std::fmax(-std::expm1(exponent) - a * std::exp(exponent) * sum, 0.0), 1.0);
}

/// Requires: 0 < a, 0 < x, both finite.
POLYOP_HD inline GammaParts IncompleteGamma(double a, double x) {
  constexpr double kEpsilon = 0x1p-53;
  constexpr int kMaxTerms = 3000;  // 1,400 are necessary for a = x = 20,000
  if (a > 20000) return LargeGamma(a, x);
  const double density = GammaDensity(a, x);
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int k = 1; k < kMaxTerms && term > kEpsilon * sum; ++k) sum += term *= x / (a + k);
    const double lower = std::fmin(density * sum, 1.0);
    return {lower, a < 0.5 && x <= 1.1 ? UpperGammaOfSmall(a, x) : 1 - lower};
  }
  // Lentz's evaluation of the continued fraction
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, fraction = d;
  for (int k = 1; k < kMaxTerms; ++k) {
    const double factor = -k * (k - a);
    b += 2;
    d = factor * d + b;
    d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
    c = b + factor / c;
    c = std::fabs(c) < kTiny ? kTiny : c;
    fraction *= d * c;
    if (std::fabs(d * c - 1) < kEpsilon) break;
  }
  return {std::fmax(1 - density * fraction, 0.0), std::fmin(density * fraction, 1.0)};
}

POLYOP_HD inline double Igamma(double a, double x, bool upper) {
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x))) return NAN;
  if (x == 0 || std::isinf(a)) return upper ? 1 : 0;
  if (a == 0 || std::isinf(x)) return upper ? 0 : 1;
  const GammaParts parts = IncompleteGamma(a, x);
  return upper ? parts.upper : parts.lower;
}

/// Hurwitz's zeta function of s > 1, q > 0: some terms, then Euler's and Maclaurin's formula.
POLYOP_HD inline double ZetaAbove(double s, double q) {
  constexpr int kMaxTerms = 64;
  constexpr double kFactors[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -691.0 / 1307674368000,
                                 1.0 / 74724249600.0,
                                 -3617.0 / 10670622842880000};
  if (std::isinf(q)) return 0;
  double sum = std::pow(q, -s), a = q;
  if (std::isinf(s) || std::isinf(sum)) return sum;
  for (int k = 0; k < kMaxTerms && a < 10 + s; ++k) {
    a += 1;
    const double term = std::pow(a, -s);
    sum += term;
    if (term < sum * 0x1p-60) return sum;
  }
  // The sum has the term of a.
  const double power = std::pow(a, -s);
  const bool underflows = power < 0x1p-1022;
  sum += (underflows ? std::pow(a, 1 - s) : power * a) / (s - 1) - power / 2;
  if (underflows) return sum;
  double factor = power * s / a;
  for (int k = 0; k < 8; ++k) {
    sum += factor * kFactors[k];
    factor *= (s + 2 * k + 1) / a * ((s + 2 * k + 2) / a);
  }
  return sum;
}

POLYOP_HD inline double Zeta(double s, double q) {
  if (s == 1) return kInfinity;
  if (!(s > 1) || std::isnan(q)) return NAN;
  if (q > 0) return ZetaAbove(s, q);
  if (q == std::floor(q)) return kInfinity;
  if (s != std::floor(s) || std::isinf(s)) return NAN;
  // The terms below 0 are those of the function of positive numbers, with the sign of (-1)^s.
  const double fraction = q - std::floor(q);  // the first positive term
  const double below = ZetaAbove(s, 1 - fraction) - ZetaAbove(s, 1 - q);
  return ZetaAbove(s, fraction) + (std::fmod(s, 2) == 0 ? below : -below);
}

/// Returns the length of (a, b) without overflow.
POLYOP_HD inline double Length(double a, double b) {
  if (std::isinf(a) || std::isinf(b)) return kInfinity;
  const double longer = std::fmax(std::fabs(a), std::fabs(b)), shorter = std::fmin(std::fabs(a), std::fabs(b));
  if (!(longer > 0x1p1000) || std::isnan(a) || std::isnan(b)) return std::hypot(a, b);
  return longer * std::sqrt(1 + (shorter / longer) * (shorter / longer));  // CUDA's hypot may overflow
}

/// Returns log(exp(a) + exp(b)).
POLYOP_HD inline double LogOfSum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  if (a == b) return a + 0.69314718055994530942;  // also of infinities, which have no difference
  return std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

/// The largest degrees of polynomials.
constexpr double kMaxHermiteDegree = 512, kMaxDegree = 1024, kMaxChebyshevDegree = 0x1p53;

/// Computes the special function that the attribute names.
POLYOP_HD inline double Series(SpecialBinary::Function function, double a, double b) {
  using enum SpecialBinary::Function;
  if (function == kIgamma || function == kIgammac) return Igamma(a, b, function == kIgammac);
  if (function == kZeta) return Zeta(a, b);
  const bool hermite = function == kHermiteH || function == kHermiteHe;
  const double degree = std::trunc(b);
  if (!(degree <= (hermite ? kMaxHermiteDegree : kMaxDegree)) || std::isnan(a)) return NAN;
  switch (function) {
    case kHermiteH: return ByRecurrence<HermiteHTerms>(a, degree);
    case kHermiteHe: return ByRecurrence<HermiteHeTerms>(a, degree);
    case kLaguerre: return ByRecurrence<LaguerreTerms>(a, degree);
    default: return ByRecurrence<LegendreTerms>(a, degree);
  }
}

/// Returns one of Chebyshev's polynomials.
POLYOP_HD inline double ChebyshevOf(int64_t variant, double a, double b) {
  const double degree = std::trunc(b);
  if (!(degree <= kMaxChebyshevDegree) || std::isnan(a)) return NAN;
  switch (variant) {
    case SpecialBinary::kChebyshevT: return ChebyshevPolynomial<Chebyshev::kT>(a, degree);
    case SpecialBinary::kChebyshevU: return ChebyshevPolynomial<Chebyshev::kU>(a, degree);
    case SpecialBinary::kChebyshevV: return ChebyshevPolynomial<Chebyshev::kV>(a, degree);
    default: return ChebyshevPolynomial<Chebyshev::kW>(a, degree);
  }
}

/// Computes the function that the attribute names.
template <class T>
POLYOP_HD T Binary(const SpecialBinary& op, T a, T b) {
  if (op.function != SpecialBinary::Function::kElementary) {
    return static_cast<T>(Series(op.function, static_cast<double>(a), static_cast<double>(b)));
  }
  switch (op.variant) {
    case SpecialBinary::kHypot: return static_cast<T>(Length(a, b));
    case SpecialBinary::kNextafter: return std::nextafter(a, b);
    case SpecialBinary::kCopysign: return std::copysign(a, b);
    case SpecialBinary::kLogaddexp: return static_cast<T>(LogOfSum(a, b));
    case SpecialBinary::kXlogy: return a == 0 && !std::isnan(b) ? T{0} : static_cast<T>(a * std::log(b));
    case SpecialBinary::kAtan2: return std::atan2(a, b);
    case SpecialBinary::kFmod: return std::fmod(a, b);
    default: return static_cast<T>(ChebyshevOf(op.variant, static_cast<double>(a), static_cast<double>(b)));
  }
}

}  // namespace polyop::special

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/special/special_binary/special_binary.h"

namespace polyop {
namespace {

constexpr double kBinaryInfinity = std::numeric_limits<double>::infinity();

// The integral of the density of the gamma distribution, of log(t / a), by Simpson's rule.
double IntegralOfGamma(double a, double x) {
  const auto wide = static_cast<long double>(a);
  const long double spread = 12 / std::sqrt(wide), low = -spread,
                    high = std::min(std::log(static_cast<long double>(x / a)), spread);
  if (high <= low) return 0;
  constexpr int kIntervals = 4000;
  const long double step = (high - low) / kIntervals;
  long double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const long double v = low + i * step, square = v * v;
    // expm1(v) - v, without cancellation
    const long double excess = std::fabs(v) < 1e-3L
                                   ? square / 2 + square * v / 6 + square * square / 24 + square * square * v / 120
                                   : std::expm1(v) - v;
    sum += std::exp(-wide * excess) * (i == 0 || i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2);
  }
  const long double stirling = 1 / (12 * wide) - 1 / (360 * wide * wide * wide);
  constexpr long double kTwoPi = 6.283185307179586476925286766559L;
  return static_cast<double>(sum * step / 3 * std::sqrt(wide / kTwoPi) * std::exp(-stirling));
}

// The power series, whose terms are all positive.
double LowerGamma(double a, double x) {
  if (a > 20000) return IntegralOfGamma(a, x);
  if (x > a + 60 * std::sqrt(a) + 1000) return 1;
  const long double wide = a;
  long double term = 1, sum = 1;
  for (int k = 1; k < 200000 && term > sum * 1e-22L; ++k) sum += term *= x / (wide + k);
  return std::min(1.0, static_cast<double>(
                           sum * std::exp(wide * std::log(static_cast<long double>(x)) - x - std::lgamma(wide + 1))));
}

double RefIgamma(double a, double x, bool upper) {
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x))) return NAN;
  const double lower = x == 0 || std::isinf(a) ? 0 : a == 0 || std::isinf(x) ? 1 : LowerGamma(a, x);
  return upper ? 1 - lower : lower;
}

// Sums the terms, and integrates the rest with two corrections.
double SumOfPowers(double s, double q) {
  if (std::isinf(q)) return 0;
  long double sum = 0, at = q;
  for (int k = 0; k < 4000; ++k) {
    const long double term = std::pow(at, static_cast<long double>(-s));
    if (std::isinf(static_cast<double>(term))) return kBinaryInfinity;
    sum += term;
    at += 1;
    if (k > 100 && term < sum * 1e-24L) return static_cast<double>(sum);
  }
  const long double power = std::pow(at, static_cast<long double>(-s));
  const long double step = s / at;
  return static_cast<double>(sum + power * at / (s - 1) + power / 2 +
                             power * step * (1.0L / 12 - (s + 1) / at * ((s + 2) / at) / 720));
}

double RefZeta(double s, double q) {
  if (s == 1) return kBinaryInfinity;
  if (!(s > 1) || std::isnan(q)) return NAN;
  if (q > 0) return std::isinf(s) ? std::pow(q, -s) : SumOfPowers(s, q);
  if (q == std::floor(q)) return kBinaryInfinity;
  if (s != std::floor(s) || std::isinf(s)) return NAN;
  // Terms at the poles' distance from both sides, then those that are left.
  const double first = q - std::floor(q), sign = std::fmod(s, 2) == 0 ? 1 : -1;
  double negative = 0, size = 1 - first;
  const double last = -q;
  for (int k = 0; k < 200000 && size <= last; ++k, size += 1) negative += std::pow(size, -s);
  if (size <= last) negative += SumOfPowers(s, size) - SumOfPowers(s, last + 1);
  return SumOfPowers(s, first) + sign * negative;
}

// Sums the polynomial's values of all degrees in a table.
double RefPolynomial(SpecialBinary::Function function, double x, int degree) {
  using enum SpecialBinary::Function;
  std::vector<double> p = {1, function == kHermiteH ? 2 * x : function == kLaguerre ? 1 - x : x};
  for (int n = 1; n < degree; ++n) {
    const auto at = static_cast<size_t>(n);
    const double here = p[at], before = p[at - 1];
    switch (function) {
      case kHermiteH: p.push_back(2 * (x * here - n * before)); break;
      case kHermiteHe: p.push_back(x * here - n * before); break;
      case kLaguerre: p.push_back(((2 * n + 1 - x) * here - n * before) / (n + 1)); break;
      default: p.push_back(((2 * n + 1) * x * here - n * before) / (n + 1));
    }
  }
  return p[static_cast<size_t>(degree)];
}

// Returns the neighbour of x by halving an interval of floating-point numbers until it has no number inside.
template <class T>
T Neighbour(T x, T to) {
  if (std::isnan(x) || std::isnan(to)) return static_cast<T>(NAN);
  if (x == to) return to;
  constexpr T kMax = std::numeric_limits<T>::max();
  if (std::isinf(x)) return std::copysign(kMax, x);
  if (x == 0) return std::copysign(std::numeric_limits<T>::denorm_min(), to);
  T near = x, far = std::isinf(to) ? std::copysign(kMax, to) : to;
  if (near == far) return to;
  for (;;) {
    const T middle = near / 2 + far / 2, other = near + (far - near) / 2;
    const auto inside = [&](T z) { return z != near && z != far && std::isfinite(z); };
    if (inside(middle) && (middle > near) == (far > near)) {
      far = middle;
    } else if (inside(other) && (other > near) == (far > near)) {
      far = other;
    } else {
      return far;
    }
  }
}

// The remainder by subtracting multiples of |b|, each of which is a product with a power of two.
double RefRemainder(double a, double b) {
  if (std::isnan(a) || std::isnan(b) || std::isinf(a) || b == 0) return NAN;
  if (std::isinf(b)) return a;
  double rest = std::fabs(a);
  const double size = std::fabs(b);
  while (rest >= size) {
    double part = std::ldexp(size, std::ilogb(rest) - std::ilogb(size));
    if (part > rest) part = std::ldexp(size, std::ilogb(rest) - std::ilogb(size) - 1);
    rest -= part;
  }
  return std::signbit(a) ? -rest : rest;
}

double RefLength(double a, double b) {
  if (std::isinf(a) || std::isinf(b)) return kBinaryInfinity;
  const auto x = static_cast<long double>(a), y = static_cast<long double>(b);
  return static_cast<double>(std::sqrt(x * x + y * y));
}

double RefLogOfSum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  const double larger = a > b ? a : b, smaller = a > b ? b : a;
  if (std::isinf(larger) || std::isinf(smaller)) return larger;
  return larger + std::log1p(std::exp(smaller - larger));
}

double RefProductWithLog(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return a == 0 ? 0 : a * std::log(b);
}

// Chebyshev's polynomials as functions of an angle whose cosine, or hyperbolic cosine, is |x|.
double RefChebyshev(int64_t variant, double x, double degree) {
  if (std::isnan(x) || !(degree <= 0x1p53)) return NAN;
  if (degree < 0) return 0;
  if (degree == 0) return 1;
  const bool odd = std::fmod(degree, 2) == 1;
  if (std::isinf(x)) return odd && x < 0 ? -kBinaryInfinity : kBinaryInfinity;
  // V and W are each other's mirror images.
  const auto mirrored = variant == SpecialBinary::kChebyshevV   ? SpecialBinary::kChebyshevW
                        : variant == SpecialBinary::kChebyshevW ? SpecialBinary::kChebyshevV
                                                                : static_cast<SpecialBinary::Variant>(variant);
  const int64_t kind = x < 0 ? mirrored : variant;
  const auto n = static_cast<long double>(degree), size = std::fabs(static_cast<long double>(x));
  const bool grows = size > 1;
  // The angle of x near 1 has no digits in its cosine.
  const long double angle = 2 * (grows ? std::asinh(std::sqrt((size - 1) / 2)) : std::asin(std::sqrt((1 - size) / 2)));
  const auto cosine = [=](long double t) { return grows ? std::cosh(t) : std::cos(t); };
  const auto ratio = [=](long double factor, long double divisor) {
    if (angle == 0) return factor / divisor;
    const long double above = factor * angle, below = divisor * angle;
    // Both may overflow although their ratio does not.
    if (grows && above > 11000) return std::exp(above - below) * (below > 11000 ? 1 : 1 / (1 - std::exp(-2 * below)));
    return grows ? std::sinh(above) / std::sinh(below) : std::sin(above) / std::sin(below);
  };
  long double result = 0;
  switch (kind) {
    case SpecialBinary::kChebyshevT: result = cosine(n * angle); break;
    case SpecialBinary::kChebyshevU: result = ratio(n + 1, 1); break;
    case SpecialBinary::kChebyshevV: result = cosine((n + 0.5L) * angle) / cosine(angle / 2); break;
    default: result = ratio(n + 0.5L, 0.5L);
  }
  return static_cast<double>(odd && x < 0 ? -result : result);
}

template <class T>
Status SpecialBinaryReference(const SpecialBinary& op, const Context&, Tensor<const T, kAnyRank> a,
                              Tensor<const T, kAnyRank> b, Tensor<T, kAnyRank> y) {
  using enum SpecialBinary::Function;
  const auto elementary = [&](T first, T second) -> T {
    switch (op.variant) {
      case SpecialBinary::kHypot: return static_cast<T>(RefLength(first, second));
      case SpecialBinary::kNextafter: return Neighbour(first, second);
      case SpecialBinary::kCopysign: return std::signbit(first) == std::signbit(second) ? first : -first;
      case SpecialBinary::kLogaddexp: return static_cast<T>(RefLogOfSum(first, second));
      case SpecialBinary::kXlogy: return static_cast<T>(RefProductWithLog(first, second));
      case SpecialBinary::kFmod: return static_cast<T>(RefRemainder(first, second));
      case SpecialBinary::kAtan2: return static_cast<T>(std::atan2(double{first}, double{second}));
      default: return static_cast<T>(RefChebyshev(op.variant, first, std::trunc(double{second})));
    }
  };
  for (int64_t i = 0; i < y.size(); ++i) {
    if (op.function == kElementary) {
      y[i] = elementary(a[i], b[i]);
      continue;
    }
    const auto first = static_cast<double>(a[i]), second = std::trunc(static_cast<double>(b[i]));
    const bool hermite = op.function == kHermiteH || op.function == kHermiteHe;
    if (op.function == kIgamma || op.function == kIgammac) {
      y[i] = static_cast<T>(RefIgamma(first, b[i], op.function == kIgammac));
    } else if (op.function == kZeta) {
      y[i] = static_cast<T>(RefZeta(first, b[i]));
    } else if (!(second <= (hermite ? 512 : 1024)) || std::isnan(first)) {
      y[i] = static_cast<T>(NAN);
    } else {
      y[i] = second < 0 ? T{0} : static_cast<T>(RefPolynomial(op.function, first, static_cast<int>(second)));
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(SpecialBinary, SpecialBinaryReference, float, double);

}  // namespace
}  // namespace polyop

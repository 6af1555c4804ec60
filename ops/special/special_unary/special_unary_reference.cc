// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "ops/special/special_unary/special_unary.h"

namespace polyop {
namespace {

constexpr double kUnaryPi = std::numbers::pi, kUnaryInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnaryEuler = std::numbers::egamma;

// The trapezoidal rule on (-inf, inf) or for a periodic function, where it converges exponentially.
double UnaryTrapezoid(double low, double high, double step, const std::function<double(double)>& f) {
  const auto count = static_cast<int64_t>(std::ceil((high - low) / step));
  long double sum = 0;
  for (int64_t i = 0; i <= count; ++i) sum += f(low + static_cast<double>(i) * step) * (i == 0 || i == count ? 0.5 : 1);
  return static_cast<double>(sum * step);
}

// Hankel's asymptotic series sum(a_k(order) z^k), until its terms increase. The signs of pairs of terms alternate if
// `oscillates`, and only even or odd terms count.
double HankelSum(double order, double x, bool oscillates, int parity) {
  double term = 1, sum = 0;
  for (int k = 0; k < 200; ++k) {
    if (!oscillates || k % 2 == parity) sum += oscillates && k / 2 % 2 == 1 ? -term : term;
    const double odd = 2 * k + 1, next = term * (4 * order * order - odd * odd) / (8 * (k + 1) * x);
    if (std::fabs(next) > std::fabs(term) || next == 0) break;
    term = next;
  }
  return sum;
}

// exp(-x) I(x), of x >= 0: an integral of Bessel.
double RefScaledI(int n, double x) {
  if (x > 1e3) return HankelSum(n, -x, false, 0) / std::sqrt(2 * kUnaryPi * x);
  const int points = 400;
  return UnaryTrapezoid(0, kUnaryPi, kUnaryPi / points,
                        [&](double t) { return std::exp(x * (std::cos(t) - 1)) * std::cos(n * t); }) /
         kUnaryPi;
}

// exp(x) K(x), of any order, of x > 0: an integral over cosh.
double RefScaledK(double order, double x) {
  if (x > 1e3) return HankelSum(order, x, false, 0) * std::sqrt(kUnaryPi / (2 * x));
  const double end = std::acosh(1 + 745 / x), step = std::min(0.05, 0.25 / std::sqrt(x));
  return UnaryTrapezoid(0, end, step,
                        [&](double t) { return std::exp(-x * (std::cosh(t) - 1)) * std::cosh(order * t); });
}

double RefBesselFar(int n, double x, bool second) {
  const double angle = x - (2 * n + 1) * kUnaryPi / 4;
  const double p = HankelSum(n, x, true, 0), q = HankelSum(n, x, true, 1);
  const double sum = second ? p * std::sin(angle) + q * std::cos(angle) : p * std::cos(angle) - q * std::sin(angle);
  return std::sqrt(2 / (kUnaryPi * x)) * sum;
}

double RefJ(int n, double x) {
  if (x > 30 && n < 2) return RefBesselFar(n, x, false);
  return UnaryTrapezoid(0, kUnaryPi, kUnaryPi / 200, [&](double t) { return std::cos(n * t - x * std::sin(t)); }) /
         kUnaryPi;
}

// Neumann's series, and its derivative.
double RefY(int n, double x) {
  if (x > 30) return RefBesselFar(n, x, true);
  const double log = std::log(x / 2) + kUnaryEuler;
  double sum = 0;
  for (int k = 1; k < 60; ++k) {
    const double sign = k % 2 == 1 ? -1 : 1;
    sum += sign / k * (n == 0 ? 2 * RefJ(2 * k, x) : RefJ(2 * k - 1, x) - RefJ(2 * k + 1, x));
  }
  if (n == 0) return 2 / kUnaryPi * (log * RefJ(0, x) - sum);
  return 2 / kUnaryPi * (log * RefJ(1, x) - RefJ(0, x) / x + sum);
}

// Integrates y'' = x y from 0 by Taylor series.
double RefAiryBelow(double x) {
  if (x < -60) {
    const long double phase = 2.0L / 3 * (-x * std::sqrt(static_cast<long double>(-x)));
    const auto zeta = static_cast<double>(phase);
    double p = 0, q = 0, term = 1;
    for (int k = 0; k < 40; ++k) {
      (k % 2 == 0 ? p : q) += k / 2 % 2 == 1 ? -term : term;
      const double next = term * (6.0 * k + 5) * (6.0 * k + 3) * (6.0 * k + 1) / (216.0 * (k + 1) * (2 * k + 1) * zeta);
      if (next > term) break;
      term = next;
    }
    const long double c = phase + 0.785398163397448309615660845819875721L;
    const auto sine = static_cast<double>(std::sin(c)), cosine = static_cast<double>(std::cos(c));
    return (p * sine - q * cosine) / (std::sqrt(kUnaryPi) * std::pow(-x, 0.25));
  }
  long double y = 0.355028053887817239260063186004183177L, slope = -0.258819403792806798405183560189203964L, at = 0;
  while (at > x) {
    const long double h = std::max<long double>(x - at, -0.125L);
    // c[k + 2] (k + 2) (k + 1) = at c[k] + c[k - 1]
    long double c[40] = {y, slope};
    for (int k = 0; k < 38; ++k) {
      c[k + 2] = (at * c[k] + (k > 0 ? c[k - 1] : 0)) / ((k + 2) * (k + 1));
    }
    y = slope = 0;
    for (int k = 39; k >= 0; --k) y = y * h + c[k];
    for (int k = 39; k >= 1; --k) slope = slope * h + k * c[k];
    at += h;
  }
  return static_cast<double>(y);
}

double RefAiry(double x) {
  if (std::isinf(x)) return 0;
  if (x < 0) return RefAiryBelow(x);
  if (x < 1e-200) return 0.355028053887817239260063186004183177;
  const double zeta = 2.0 / 3 * x * std::sqrt(x);
  return std::sqrt(x / 3) / kUnaryPi * RefScaledK(1.0 / 3, zeta) * std::exp(-zeta);
}

double RefErfcx(double x) {
  if (x < 20) return std::exp(x * x) * std::erfc(x);
  double term = 1, sum = 1;
  for (int k = 1; k < 20; ++k) sum += term *= -(2 * k - 1) / (2 * x * x);
  return sum / (x * std::sqrt(kUnaryPi));
}

double RefLogNdtr(double x) {
  const double t = -x * std::sqrt(0.5);
  if (t > 5) return std::log(RefErfcx(t) / 2) - t * t;
  return x > 0 ? std::log1p(-std::erfc(-t) / 2) : std::log(std::erfc(t) / 2);
}

// Halves an interval around the root of an increasing function.
double UnaryBisect(double low, double high, const std::function<bool(double)>& is_below) {
  for (int step = 0; step < 200; ++step) {
    const double middle = low + (high - low) / 2;
    (is_below(middle) ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

double RefErfinv(double y) {
  if (std::fabs(y) >= 1) return std::fabs(y) == 1 ? y * kUnaryInfinity : NAN;
  const double size = std::fabs(y);
  const double x =
      UnaryBisect(0, 7, [&](double t) { return size < 0.5 ? std::erf(t) < size : std::erfc(t) > 1 - size; });
  return std::copysign(x, y);
}

double RefNdtri(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -kUnaryInfinity : p == 1 ? kUnaryInfinity : NAN;
  if (p > 0.5) return -RefNdtri(1 - p);
  return -UnaryBisect(0, 40, [&](double t) { return std::erfc(t * std::sqrt(0.5)) / 2 > p; });
}

double RefLgamma(double x) {
  if (x <= 0 && x == std::floor(x)) return kUnaryInfinity;
  if (std::isinf(x)) return kUnaryInfinity;
  if (x < 0) return std::log(kUnaryPi / std::fabs(std::sin(kUnaryPi * std::remainder(x, 2)))) - RefLgamma(1 - x);
  long double product = 0, z = x;
  while (z < 40) product += std::log(z++);
  return static_cast<double>((z - 0.5L) * std::log(z) - z + std::log(2 * std::numbers::pi_v<long double>) / 2 +
                             1 / (12 * z) - 1 / (360 * z * z * z) + 1 / (1260 * z * z * z * z * z) - product);
}

double RefDigamma(double x) {
  if (x == 0) return -std::copysign(kUnaryInfinity, x);
  if (x < 0) {
    if (x == std::floor(x)) return NAN;
    return RefDigamma(1 - x) - kUnaryPi / std::tan(kUnaryPi * std::remainder(x, 1));
  }
  if (std::isinf(x)) return x;
  long double sum = 0, z = x;
  while (z < 60) sum -= 1 / z++;
  return static_cast<double>(sum + std::log(z) - 1 / (2 * z) - 1 / (12 * z * z) + 1 / (120 * z * z * z * z) -
                             1 / (252 * z * z * z * z * z * z));
}

double RefTrigamma(double x) {
  if (x == 0) return kUnaryInfinity;
  if (x < 0) {
    if (std::isinf(x)) return NAN;
    if (x == std::floor(x)) return kUnaryInfinity;
    const double ratio = kUnaryPi / std::sin(kUnaryPi * std::remainder(x, 1));
    return ratio * ratio - RefTrigamma(1 - x);
  }
  if (std::isinf(x)) return 0;
  long double sum = 0, z = x;
  while (z < 60) {
    sum += 1 / (z * z);
    ++z;
  }
  return static_cast<double>(sum + 1 / z + 1 / (2 * z * z) + 1 / (6 * z * z * z) - 1 / (30 * z * z * z * z * z) +
                             1 / (42 * z * z * z * z * z * z * z));
}

double RefBesselI(int64_t variant, double x) {
  const int n = static_cast<int>(variant % 2);
  const double size = std::fabs(x);
  double result = std::isinf(x) ? 0 : RefScaledI(n, size);
  if (variant < 2) result = size > 1000 ? kUnaryInfinity : result * std::exp(size / 2) * std::exp(size / 2);
  return n == 1 ? std::copysign(std::max(result, 0.0), x) : result;
}

double RefBesselK(int64_t variant, double x) {
  if (!(x > 0)) return x == 0 ? kUnaryInfinity : NAN;
  if (std::isinf(x)) return 0;
  const double small = x < 1e-300 ? 1e-300 : x;
  return RefScaledK(static_cast<double>(variant % 2), small) * (variant < 2 ? std::exp(-x) : 1);
}

double RefElementary(int64_t variant, double x) {
  const double softplus = x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  switch (variant) {
    case 0: return std::tan(x);
    case 1: return std::sinh(x);
    case 2: return std::cosh(x);
    case 3: return std::atanh(x);
    case 4: return softplus;
    case 5: return x * std::tanh(softplus);
    case 6: return x == 0 ? 0 : x < 0 || std::isinf(x) ? -kUnaryInfinity : -x * std::log(x);
    default: return std::fabs(x - 0.5) < 0.25 ? std::log1p((2 * x - 1) / (1 - x)) : std::log(x / (1 - x));
  }
}

double RefErf(int64_t variant, double x) {
  switch (variant) {
    case 0: return std::erf(x);
    case 1: return std::erfc(x);
    case 2: return RefErfcx(x);
    case 3: return RefLogNdtr(x);
    case 4: return RefErfinv(x);
    default: return RefNdtri(x);
  }
}

double RefSpecial(const SpecialUnary& op, double x) {
  using enum SpecialUnary::Function;
  if (std::isnan(x)) return x;
  const int order = static_cast<int>(op.variant % 2);
  switch (op.function) {
    case kErf: return RefErf(op.variant, x);
    case kGamma: return op.variant == 0 ? RefLgamma(x) : op.variant == 1 ? RefDigamma(x) : RefTrigamma(x);
    case kBesselI: return RefBesselI(op.variant, x);
    case kBesselK: return RefBesselK(op.variant, x);
    case kBesselJ:
      if (std::isinf(x)) return 0;
      if (op.variant == 2) return x == 0 ? 1 : std::sin(x) / x;
      return RefJ(order, std::fabs(x)) * (order == 1 && x < 0 ? -1 : 1);
    case kBesselY:
      if (!(x > 0)) return x == 0 ? -kUnaryInfinity : NAN;
      return std::isinf(x) ? 0 : x < 1e-300 ? RefY(order, 1e-300) : RefY(order, x);
    case kAiry: break;
    case kElementary: return RefElementary(op.variant, x);
  }
  return RefAiry(x);
}

Status SpecialUnaryReference(const SpecialUnary& op, const Context&, Tensor<const double, kAnyRank> x,
                             Tensor<double, kAnyRank> y) {
  for (int64_t i = 0; i < x.size(); ++i) y[i] = RefSpecial(op, x[i]);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(SpecialUnary, SpecialUnaryReference);

}  // namespace
}  // namespace polyop

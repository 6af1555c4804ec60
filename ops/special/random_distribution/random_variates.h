// SPDX-License-Identifier: Apache-2.0
// The variates of one element, which CPU and GPU share. The number of rejections is bounded; the bound is reached with
// a probability below 1e-100.
#pragma once

#include <cmath>

#include "ops/special/numbers.h"
#include "ops/special/random_distribution/random_distribution.h"
#include "ops/special/random_distribution/random_draws.h"

namespace polyop {

constexpr int kMaxRejections = 1000;

POLYOP_HD inline double Normal(Draws& draws) {
  const double radius = std::sqrt(-2 * std::log(draws.Uniform()));
  return radius * std::cos(2 * special::kPi * draws.Uniform());
}

/// Marsaglia's and Tsang's method; a shape below 1 is that of a larger one times a power of a uniform number.
POLYOP_HD inline double GammaVariate(double shape, double smallest, Draws& draws) {
  if (!(shape >= 0)) return NAN;
  if (std::isinf(shape)) return shape;
  double scale = 1;
  if (shape < 1) {
    scale = shape == 0 ? 0 : std::pow(draws.Uniform(), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double variate = d;
  for (int k = 0; k < kMaxRejections; ++k) {
    const double x = Normal(draws), y = 1 + c * x, log_u = std::log(draws.Uniform());
    if (!(y > 0)) continue;
    const double v = y * y * y;
    if (log_u < 0.5 * x * x + d * (1 - v + std::log(v))) {
      variate = d * v;
      break;
    }
  }
  variate *= scale;
  return variate > smallest ? variate : smallest;
}

/// Hörmann's PTRS for rates of 10 and more; products of uniform numbers for others.
POLYOP_HD inline double PoissonVariate(double rate, Draws& draws) {
  if (!(rate >= 0)) return NAN;
  if (rate == 0 || std::isinf(rate)) return rate;
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double product = draws.Uniform(), count = 0;
    for (; product > limit && count < kMaxRejections; count += 1) product *= draws.Uniform();
    return count;
  }
  const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double log_alpha = std::log(1.1239 + 1.1328 / (b - 3.4)), limit = 0.9277 - 3.6224 / (b - 2);
  for (int n = 0; n < kMaxRejections; ++n) {
    const double u = draws.Uniform() - 0.5, v = draws.Uniform(), near = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / near + b) * u + rate + 0.43);
    if (near >= 0.07 && v <= limit) return k;
    if (k < 0 || (near < 0.013 && v > near)) continue;
    if (std::log(v) + log_alpha - std::log(a / (near * near) + b) <=
        k * log_rate - rate - special::LogGammaAbove(k + 1)) {
      return k;
    }
  }
  return std::floor(rate);
}

/// Returns log(k!) - ((k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2).
POLYOP_HD inline double StirlingRest(double k) {
  const double x = k + 1;
  if (k < 10) return special::LogGammaAbove(x) - ((k + 0.5) * std::log(x) - x + 0.91893853320467274178);
  const double square = x * x;
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / x;
}

/// Hörmann's BTRS if 10 or more successes are expected; distances between successes otherwise.
POLYOP_HD inline double BinomialVariate(double trials, double p, Draws& draws) {
  if (!(trials >= 0) || std::isinf(trials) || !(p >= 0 && p <= 1)) return NAN;
  const double n = std::floor(trials);
  const bool other = p > 0.5;  // counts the failures
  const double q = other ? 1 - p : p;
  if (q == 0 || n == 0) return other ? n : 0;
  if (n * q < 10) {
    const double log_failure = std::log1p(-q);
    double at = 0, count = -1;
    for (int k = 0; k < kMaxRejections && at <= n; ++k) {
      at += std::ceil(std::log(draws.Uniform()) / log_failure);
      count += 1;
    }
    return other ? n - count : count;
  }
  const double deviation = std::sqrt(n * q * (1 - q)), b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * q, centre = n * q + 0.5, limit = 0.92 - 4.2 / b;
  const double odds = q / (1 - q), alpha = (2.83 + 5.1 / b) * deviation, mode = std::floor((n + 1) * q);
  const double of_mode =
      (mode + 0.5) * std::log((mode + 1) / (odds * (n - mode + 1))) + StirlingRest(mode) + StirlingRest(n - mode);
  double count = mode;
  for (int round = 0; round < kMaxRejections; ++round) {
    const double u = draws.Uniform() - 0.5, v = draws.Uniform(), near = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / near + b) * u + centre);
    bool take = near >= 0.07 && v <= limit;
    if (!take) {
      if (k < 0 || k > n) continue;
      const double bound = of_mode + (n + 1) * std::log((n - mode + 1) / (n - k + 1)) +
                           (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) - StirlingRest(k) - StirlingRest(n - k);
      take = std::log(v * alpha / (a / (near * near) + b)) <= bound;
    }
    if (take) {
      count = k;
      break;
    }
  }
  return other ? n - count : count;
}

/// Returns the number of one element. `b` is read for distributions of two parameters only.
template <class T>
POLYOP_HD T Variate(RandomDistribution::Distribution distribution, const int64_t* seed, int64_t element, const T* a,
                    const T* b, double smallest) {
  Draws draws(seed, element);
  const auto first = static_cast<double>(a[element]);
  switch (distribution) {
    case RandomDistribution::Distribution::kPoisson: return static_cast<T>(PoissonVariate(first, draws));
    case RandomDistribution::Distribution::kGamma: return static_cast<T>(GammaVariate(first, smallest, draws));
    default: return static_cast<T>(BinomialVariate(first, static_cast<double>(b[element]), draws));
  }
}

}  // namespace polyop

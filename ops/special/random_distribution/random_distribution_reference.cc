// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/special/random_distribution/random_distribution.h"
#include "ops/special/random_distribution/random_draws.h"

namespace polyop {
namespace {

// The reference draws the same uniform numbers, in the order of the papers. Its functions are the C library's.
constexpr double kRefPi = 3.14159265358979323846;
constexpr int kRounds = 1000;

double RefGamma(double shape, double smallest, Draws& draws) {
  if (std::isnan(shape) || shape < 0) return NAN;
  if (std::isinf(shape)) return shape;
  const bool below = shape < 1;
  double factor = 1;
  if (below) factor = shape == 0 ? 0 : std::pow(draws.Uniform(), 1 / shape);
  const double d = (below ? shape + 1 : shape) - 1.0 / 3;
  double result = d;
  for (int round = 0; round < kRounds; ++round) {
    const double size = std::sqrt(-2 * std::log(draws.Uniform())), x = size * std::cos(2 * kRefPi * draws.Uniform());
    const double u = draws.Uniform(), root = 1 + x / std::sqrt(9 * d), v = std::pow(root, 3);
    if (root <= 0 || std::log(u) >= x * x / 2 + d - d * v + d * std::log(v)) continue;
    result = d * v;
    break;
  }
  return std::fmax(result * factor, smallest);
}

double RefPoisson(double rate, Draws& draws) {
  if (std::isnan(rate) || rate < 0) return NAN;
  if (rate == 0 || std::isinf(rate)) return rate;
  if (rate < 10) {
    int count = 0;
    for (double product = draws.Uniform(); product > std::exp(-rate) && count < kRounds; ++count) {
      product *= draws.Uniform();
    }
    return count;
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  for (int round = 0; round < kRounds; ++round) {
    const double u = draws.Uniform() - 0.5, v = draws.Uniform(), s = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / s + b) * u + rate + 0.43);
    if (s >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (s < 0.013 && v > s)) continue;
    const double left = std::log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (s * s) + b));
    if (left <= k * std::log(rate) - rate - std::lgamma(k + 1)) return k;
  }
  return std::floor(rate);
}

double RefRest(double k) {
  static constexpr long double kHalfLogOfTwoPi = 0.918938533204672741780329736406L;
  const auto x = static_cast<long double>(k) + 1;
  if (k > 1e4) return static_cast<double>(1 / (12 * x) - 1 / (360 * x * x * x));
  return static_cast<double>(std::lgamma(x) - ((x - 0.5L) * std::log(x) - x + kHalfLogOfTwoPi));
}

double RefBinomial(double trials, double p, Draws& draws) {
  if (std::isnan(trials) || trials < 0 || std::isinf(trials) || std::isnan(p) || p < 0 || p > 1) return NAN;
  const double n = std::floor(trials);
  if (p > 0.5) return n - RefBinomial(n, 1 - p, draws);
  if (p == 0 || n == 0) return 0;
  if (n * p < 10) {  // the number of trials up to each success has a geometric distribution
    double count = 0, at = std::ceil(std::log(draws.Uniform()) / std::log1p(-p));
    while (at <= n && count < kRounds - 1) {
      count += 1;
      at += std::ceil(std::log(draws.Uniform()) / std::log1p(-p));
    }
    return count;
  }
  const double deviation = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p, r = p / (1 - p), m = std::floor((n + 1) * p);
  for (int round = 0; round < kRounds; ++round) {
    const double u = draws.Uniform() - 0.5, v = draws.Uniform(), s = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / s + b) * u + n * p + 0.5);
    if (s >= 0.07 && v <= 0.92 - 4.2 / b) return k;
    if (k < 0 || k > n) continue;
    const double log_v = std::log(v * (2.83 + 5.1 / b) * deviation / (a / (s * s) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (n - m + 1))) + RefRest(m) + RefRest(n - m) +
                         (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                         (k + 0.5) * std::log(r * (n - k + 1) / (k + 1)) - RefRest(k) - RefRest(n - k);
    if (log_v <= bound) return k;
  }
  return m;
}

template <class T>
Status RandomDistributionReference(const RandomDistribution& op, const Context&, Tensor<const int64_t, 1> seed,
                                   Tensor<const T, kAnyRank> a, std::optional<Tensor<const T, kAnyRank>> b,
                                   Tensor<T, kAnyRank> y) {
  for (int64_t i = 0; i < y.size(); ++i) {
    Draws draws(seed.data(), i);
    switch (op.distribution) {
      case RandomDistribution::Distribution::kPoisson: y[i] = static_cast<T>(RefPoisson(a[i], draws)); break;
      case RandomDistribution::Distribution::kGamma:
        y[i] = static_cast<T>(RefGamma(a[i], std::numeric_limits<T>::min(), draws));
        break;
      case RandomDistribution::Distribution::kBinomial: y[i] = static_cast<T>(RefBinomial(a[i], (*b)[i], draws)); break;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(RandomDistribution, RandomDistributionReference, float, double);

}  // namespace
}  // namespace polyop

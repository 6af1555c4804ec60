// SPDX-License-Identifier: Apache-2.0
#include "ops/special/random_distribution/random_distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/special/random_distribution/random_draws.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Distribution = RandomDistribution::Distribution;
constexpr Distribution kDistributions[] = {Distribution::kPoisson, Distribution::kGamma, Distribution::kBinomial};

HostTensor Seed(double first, double second) { return HostTensor::Of(DType::kI64, {2}, {first, second}); }

std::vector<HostTensor> Inputs(Distribution distribution, const HostTensor& seed, const HostTensor& a,
                               const HostTensor& b) {
  if (distribution == Distribution::kBinomial) return {seed, a, b};
  return {seed, a};
}

std::vector<double> Numbers(Distribution distribution, const HostTensor& seed, double a, double b,
                            DType dtype = DType::kF64, int64_t count = 40'000) {
  std::vector<HostTensor> out;
  const HostTensor first = HostTensor::Full(dtype, {count}, a), second = HostTensor::Full(dtype, {count}, b);
  const Status status = Run(RandomDistribution{distribution}, Inputs(distribution, seed, first, second), &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out[0].ToDoubles();
}

// The vectors of the generator's authors.
TEST(RandomDistribution, KnownBits) {
  uint32_t zeros[4] = {0, 0, 0, 0}, ones[4] = {~0u, ~0u, ~0u, ~0u};
  Philox{{0, 0}}(zeros);
  Philox{{~0u, ~0u}}(ones);
  const std::vector<uint32_t> got(zeros, zeros + 4), other(ones, ones + 4);
  EXPECT_EQ(got, (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(other, (std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

// The mean and the variance of many numbers, within five standard errors.
void ExpectMoments(const std::vector<double>& numbers, double mean, double variance, double kurtosis) {
  const auto count = static_cast<double>(numbers.size());
  double sum = 0, squares = 0;
  for (const double x : numbers) sum += x;
  for (const double x : numbers) squares += (x - mean) * (x - mean);
  EXPECT_NEAR(sum / count, mean, 5 * std::sqrt(variance / count));
  EXPECT_NEAR(squares / count, variance, 5 * variance * std::sqrt((kurtosis - 1) / count));
}

TEST(RandomDistribution, Moments) {
  double seed = 1;
  for (const double rate : {0.01, 0.7, 9.9, 10.0, 30.0, 1e4, 1e9}) {
    ExpectMoments(Numbers(Distribution::kPoisson, Seed(seed++, 5), rate, 0), rate, rate, 3 + 1 / rate);
  }
  for (const double shape : {0.05, 0.9, 1.0, 2.5, 70.0, 1e6}) {
    ExpectMoments(Numbers(Distribution::kGamma, Seed(seed++, 5), shape, 0), shape, shape, 3 + 6 / shape);
  }
  for (const double n : {1.0, 7.0, 40.0, 1e5, 1e12}) {
    for (const double p : {1e-5, 0.02, 0.3, 0.5, 0.9}) {
      const double variance = n * p * (1 - p), kurtosis = 3 + (1 - 6 * p * (1 - p)) / variance;
      ExpectMoments(Numbers(Distribution::kBinomial, Seed(seed++, 5), n, p), n * p, variance, kurtosis);
    }
  }
}

// The share of each count, compared with its probability.
TEST(RandomDistribution, Probabilities) {
  constexpr int64_t kCount = 200'000;
  const auto share = [&](const std::vector<double>& numbers, double k) {
    return static_cast<double>(std::count(numbers.begin(), numbers.end(), k)) / static_cast<double>(kCount);
  };
  const auto near = [&](double got, double p) {
    EXPECT_NEAR(got, p, 5 * std::sqrt(p / static_cast<double>(kCount)) + 1e-9);
  };
  for (const double rate : {3.0, 12.0}) {
    const std::vector<double> numbers = Numbers(Distribution::kPoisson, Seed(7, 8), rate, 0, DType::kF32, kCount);
    for (int k = 0; k < 25; ++k) near(share(numbers, k), std::exp(k * std::log(rate) - rate - std::lgamma(k + 1.0)));
  }
  for (const double p : {0.1, 0.4, 0.8}) {
    constexpr double kTrials = 30;
    const std::vector<double> numbers = Numbers(Distribution::kBinomial, Seed(7, 9), kTrials, p, DType::kF32, kCount);
    for (int k = 0; k <= kTrials; ++k) {
      near(share(numbers, k), std::exp(std::lgamma(kTrials + 1) - std::lgamma(k + 1.0) - std::lgamma(kTrials - k + 1) +
                                       k * std::log(p) + (kTrials - k) * std::log1p(-p)));
    }
  }
  const std::vector<double> gamma = Numbers(Distribution::kGamma, Seed(7, 10), 1, 0, DType::kF32, kCount);
  for (const double x : {0.01, 0.3, 1.0, 4.0}) {  // of shape 1: exponential
    const auto below = std::count_if(gamma.begin(), gamma.end(), [=](double g) { return g > x; });
    near(static_cast<double>(below) / static_cast<double>(kCount), std::exp(-x));
  }
}

TEST(RandomDistribution, MatchesReference) {
  std::mt19937 rng(3);
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const Distribution distribution : kDistributions) {
      for (const double size : {3.0, 40.0, 1e4}) {
        const HostTensor a = HostTensor::Uniform(dtype, {7, 50}, rng, 0, size);
        const HostTensor b = HostTensor::Uniform(dtype, {7, 50}, rng, 0, 1);
        const Tolerance tolerance = dtype == DType::kF64 ? Tolerance{1e-9, 1e-9} : Tolerance{1e-6, 1e-6};
        ExpectMatchesReference(RandomDistribution{distribution}, Inputs(distribution, Seed(size, -9), a, b), tolerance);
      }
    }
  }
}

TEST(RandomDistribution, OtherSeedsGiveOtherNumbers) {
  const auto of = [](double first, double second) {
    return Numbers(Distribution::kGamma, Seed(first, second), 2, 0, DType::kF64, 50);
  };
  EXPECT_EQ(of(1, 2), of(1, 2));
  EXPECT_NE(of(1, 2), of(2, 2));
  EXPECT_NE(of(1, 2), of(1, 3));
  const std::vector<double> numbers = of(1, 2);
  EXPECT_NE(numbers[0], numbers[1]);
}

TEST(RandomDistribution, LimitsAndInvalidInputs) {
  const auto at = [](Distribution distribution, double a, double b) {
    return Numbers(distribution, Seed(1, 2), a, b, DType::kF64, 1)[0];
  };
  EXPECT_EQ(at(Distribution::kPoisson, 0, 0), 0);
  EXPECT_EQ(at(Distribution::kPoisson, INFINITY, 0), INFINITY);
  EXPECT_EQ(at(Distribution::kGamma, 0, 0), std::numeric_limits<double>::min());
  EXPECT_EQ(at(Distribution::kGamma, INFINITY, 0), INFINITY);
  EXPECT_EQ(at(Distribution::kBinomial, 5, 0), 0);
  EXPECT_EQ(at(Distribution::kBinomial, 5.9, 1), 5);
  EXPECT_EQ(at(Distribution::kBinomial, 0, 0.5), 0);
  EXPECT_TRUE(std::isnan(at(Distribution::kBinomial, 5, 1.1)));
  EXPECT_TRUE(std::isnan(at(Distribution::kBinomial, 5, NAN)));
  for (const Distribution distribution : kDistributions) {
    EXPECT_TRUE(std::isnan(at(distribution, -1, 0.5)));
    EXPECT_TRUE(std::isnan(at(distribution, NAN, 0.5)));
  }
  const HostTensor a = HostTensor::Full(DType::kF32, {2}, 1), empty = HostTensor::Full(DType::kF32, {0, 3}, 1);
  ExpectMatchesReference(RandomDistribution{}, {Seed(1, 2), empty});
  ExpectError(RandomDistribution{}, {HostTensor::Full(DType::kI64, {3}, 1), a}, {"'seed'"});
  ExpectError(RandomDistribution{Distribution::kBinomial}, {Seed(1, 2), a}, {"'b'"});
  ExpectError(RandomDistribution{Distribution::kGamma}, {Seed(1, 2), a, a}, {"'b'"});
}

}  // namespace
}  // namespace polyop::testing

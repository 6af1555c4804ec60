// SPDX-License-Identifier: Apache-2.0
#include "ops/special/special_unary/special_unary.h"

#include <cmath>
#include <string>

#include "kernels/cpu/simd.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Function = SpecialUnary::Function;

struct Variant {
  Function function;
  int64_t variant;
  double low, high;  // where the double's relative error is tested
};

// The ranges exclude neighbourhoods of zeros of a function.
const std::vector<Variant>& Variants() {
  static const std::vector<Variant> variants = {
      {Function::kErf, 0, -4, 4},          {Function::kErf, 1, -4, 20},         {Function::kErf, 2, -4, 60},
      {Function::kErf, 3, -60, 4},         {Function::kErf, 4, -1, 1},          {Function::kErf, 5, 0, 1},
      {Function::kGamma, 0, -20, 60},      {Function::kGamma, 1, -20, 60},      {Function::kGamma, 2, -20, 60},
      {Function::kBesselI, 0, -30, 30},    {Function::kBesselI, 1, -30, 30},    {Function::kBesselI, 2, -90, 90},
      {Function::kBesselI, 3, -90, 90},    {Function::kBesselK, 0, 0, 30},      {Function::kBesselK, 1, 0, 30},
      {Function::kBesselK, 2, 0, 90},      {Function::kBesselK, 3, 0, 90},      {Function::kBesselJ, 0, -90, 90},
      {Function::kBesselJ, 1, -90, 90},    {Function::kBesselJ, 2, -90, 90},    {Function::kBesselY, 0, 0, 90},
      {Function::kBesselY, 1, 0, 90},      {Function::kAiry, 0, -40, 12},       {Function::kElementary, 0, -1.5, 1.5},
      {Function::kElementary, 1, -20, 20}, {Function::kElementary, 2, -20, 20}, {Function::kElementary, 3, -1, 1},
      {Function::kElementary, 4, -60, 60}, {Function::kElementary, 5, -60, 60}, {Function::kElementary, 6, 0, 30},
      {Function::kElementary, 7, 0, 1},
  };
  return variants;
}

class SpecialUnaryTest : public ::testing::TestWithParam<DType> {};

TEST_P(SpecialUnaryTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Variant& v : Variants()) {
    SCOPED_TRACE(::testing::Message() << static_cast<int>(v.function) << " " << v.variant);
    const SpecialUnary op{.function = v.function, .variant = v.variant};
    const Tolerance tolerance = GetParam() == DType::kF64 ? Tolerance{2e-12, 2e-12} : Tolerance{2e-6, 2e-6};
    ExpectMatchesReference(op, {HostTensor::Uniform(GetParam(), {3, 67}, rng, v.low, v.high)}, tolerance);
    ExpectMatchesReference(op, {HostTensor::Uniform(GetParam(), {50}, rng, -2, 2)}, tolerance);
  }
}

TEST_P(SpecialUnaryTest, LimitsAndPoles) {
  const HostTensor x =
      HostTensor::Of(GetParam(), {14}, {NAN, INFINITY, -INFINITY, 0, -0.0, 1, -1, 2, -2, 8, -8, 1e-18, -1e-18, 80});
  for (const Variant& v : Variants()) {
    SCOPED_TRACE(::testing::Message() << static_cast<int>(v.function) << " " << v.variant);
    ExpectMatchesReference(SpecialUnary{.function = v.function, .variant = v.variant}, {x}, Tolerance{1e-5, 1e-5});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SpecialUnaryTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(SpecialUnary, KnownValues) {
  const auto at = [](Function function, int64_t variant, double x) {
    std::vector<HostTensor> out;
    const SpecialUnary op{.function = function, .variant = variant};
    EXPECT_TRUE(testing::Run(op, {HostTensor::Of(DType::kF64, {1}, {x})}, &out).ok());
    return out[0].at(0);
  };
  EXPECT_NEAR(at(Function::kErf, 4, 0.5), 0.476936276204469873, 1e-15);
  EXPECT_NEAR(at(Function::kErf, 5, 1e-100), -21.273453560965322, 1e-12);
  EXPECT_NEAR(at(Function::kGamma, 0, 0.5), 0.572364942924700087, 1e-14);
  EXPECT_NEAR(at(Function::kGamma, 1, 1), -0.577215664901532861, 1e-15);
  EXPECT_NEAR(at(Function::kGamma, 2, 1), 1.64493406684822644, 1e-15);
  EXPECT_NEAR(at(Function::kGamma, 2, -0.5), 8.93480220054467931, 1e-14);
  EXPECT_NEAR(at(Function::kBesselI, 0, 1), 1.26606587775200834, 1e-14);
  EXPECT_NEAR(at(Function::kBesselK, 1, 1), 0.601907230197234575, 1e-14);
  EXPECT_NEAR(at(Function::kBesselJ, 0, 10), -0.245935764451348335, 1e-14);
  EXPECT_NEAR(at(Function::kBesselJ, 2, 10), -0.0544021110889369813, 1e-15);
  EXPECT_NEAR(at(Function::kBesselJ, 2, 1e-5), 1 - 1e-10 / 6, 1e-15);
  EXPECT_NEAR(at(Function::kBesselY, 1, 10), 0.249015424206953884, 1e-14);
  EXPECT_NEAR(at(Function::kAiry, 0, 1), 0.135292416312881416, 1e-15);
  EXPECT_NEAR(at(Function::kAiry, 0, -10), 0.0402412384864431930, 1e-14);
}

// Values of mpmath with 40 digits.
TEST(SpecialUnary, DoublesNearLimitsAndZeros) {
  const auto expect = [](Function function, int64_t variant, double x, double expected) {
    std::vector<HostTensor> out;
    const SpecialUnary op{.function = function, .variant = variant};
    for (const std::string& isa : AvailableIsas()) {
      RunOptions options;
      options.isa = isa;
      EXPECT_TRUE(testing::Run(op, {HostTensor::Of(DType::kF64, {1}, {x})}, &out, options).ok());
      const double got = out[0].at(0);
      EXPECT_TRUE(got == expected || std::fabs(got / expected - 1) < 2e-14)
          << static_cast<int>(function) << " " << variant << " of " << x << ": expected " << expected << ", got "
          << got;
    }
  };
  expect(Function::kGamma, 0, 1.0000000000000002, -1.2816762426960008e-16);
  expect(Function::kGamma, 0, 1.000000000001, -5.772669797094564e-13);
  expect(Function::kGamma, 0, 1.000000001, -5.772157118381039e-10);
  expect(Function::kGamma, 0, 0.999999999, 5.77215649399226e-10);
  expect(Function::kGamma, 0, 0.5, 0.5723649429247001);
  expect(Function::kGamma, 0, 1.499, -0.120818260069932);
  expect(Function::kGamma, 0, 1.501, -0.12074528039824046);
  expect(Function::kGamma, 0, 1.999999999999, -4.2282192087173953e-13);
  expect(Function::kGamma, 0, 2.000000001, 4.2278437040226697e-10);
  expect(Function::kGamma, 0, 2.5, 0.2846828704729192);
  expect(Function::kGamma, 0, 2.501, 0.2853862722530844);
  expect(Function::kGamma, 1, 1.46163214496836, -2.2410766695906462e-15);
  expect(Function::kGamma, 1, 1.4616, -3.110625123034165e-05);
  expect(Function::kGamma, 1, 1.2, -0.2890398965921884);
  expect(Function::kGamma, 1, 1.72, 0.2242928871461575);
  expect(Function::kBesselK, 0, 5e-324, 744.5560034370396);
  expect(Function::kBesselK, 0, 1e-308, 709.3121401578245);
  expect(Function::kBesselK, 0, 1e-301, 693.1940445068661);
  expect(Function::kBesselK, 1, 5e-324, INFINITY);
  expect(Function::kBesselK, 1, 5e-309, INFINITY);
  expect(Function::kBesselK, 1, 1e-308, 1e+308);
  expect(Function::kBesselK, 1, 1e-305, 1e+305);
  expect(Function::kBesselK, 1, 1e-301, 9.999999999999999e+300);
  expect(Function::kBesselK, 3, 1e-305, 1e+305);
  expect(Function::kBesselY, 0, 5e-324, -473.9990734230043);
  expect(Function::kBesselY, 0, 1e-308, -451.5621332048362);
  expect(Function::kBesselY, 0, 1e-301, -441.3010348205242);
  expect(Function::kBesselY, 0, 100000.0, 0.001846766158865064);
  expect(Function::kAiry, 0, -4.5, 0.29215278105595946);
  expect(Function::kAiry, 0, -1234.5, 0.08473273937081211);
  expect(Function::kAiry, 0, -1e4, 0.027057383604642579);
  expect(Function::kAiry, 0, -1e6, -0.0021912611413430574);
  expect(Function::kAiry, 0, -123456789, 0.0033138777853884995);
  expect(Function::kAiry, 0, -1e9, -0.0013987219649165894);
  expect(Function::kAiry, 0, -1e12, -0.00042921836070697696);
  expect(Function::kBesselY, 0, 10000000000.0, -7.676508175792937e-06);
  expect(Function::kBesselY, 1, 3e-309, -INFINITY);
  expect(Function::kBesselY, 1, 5e-309, -1.2732395447351628e+308);
  expect(Function::kBesselY, 1, 1e-305, -6.366197723675814e+304);
  expect(Function::kBesselY, 1, 100000.0, 0.0017192103500882562);
  expect(Function::kBesselY, 1, 10000000000.0, -2.175591750630717e-06);
  expect(Function::kBesselJ, 0, 100000.0, -0.0017192011162359723);
  expect(Function::kBesselJ, 0, 10000000000.0, 2.175591750246892e-06);
  expect(Function::kBesselJ, 1, 100000.0, 0.0018467575628825677);
  expect(Function::kBesselJ, 1, 10000000000.0, -7.676508175684158e-06);
}

// A difference of exponentials has no digits there, and the exponential of the number itself is infinite.
TEST(SpecialUnary, ElementaryFunctionsOfTinyAndLargeNumbers) {
  const auto ratio = [](Function function, int64_t variant, double x, double expected) {
    std::vector<HostTensor> out;
    const SpecialUnary op{.function = function, .variant = variant};
    EXPECT_TRUE(testing::Run(op, {HostTensor::Of(DType::kF64, {1}, {x})}, &out).ok());
    return out[0].at(0) / expected;
  };
  for (const double x : {1e-12, -1e-5, 0.3, -0.999, 1.001, 30.0, -710.0}) {
    EXPECT_NEAR(ratio(Function::kElementary, 1, x, std::sinh(x)), 1, 1e-13) << x;
    EXPECT_NEAR(ratio(Function::kElementary, 2, x, std::cosh(x)), 1, 1e-13) << x;
  }
  for (const double x : {1e-12, -1e-5, 0.3, -0.999, 0.9999999}) {
    EXPECT_NEAR(ratio(Function::kElementary, 3, x, std::atanh(x)), 1, 1e-13) << x;
  }
  EXPECT_NEAR(ratio(Function::kElementary, 4, -30, std::log1p(std::exp(-30))), 1, 1e-13);
  EXPECT_NEAR(ratio(Function::kElementary, 4, 1000, 1000), 1, 1e-15);
  EXPECT_NEAR(ratio(Function::kElementary, 5, 1000, 1000), 1, 1e-15);
  EXPECT_NEAR(ratio(Function::kElementary, 5, -30, -30 * std::tanh(std::log1p(std::exp(-30)))), 1, 1e-13);
  for (const int64_t variant : {1, 2, 3, 4, 5, 6, 7}) {  // of float, by separate code
    const bool in_unit = variant == 3 || variant == 7;
    HostTensor y = HostTensor::Full(DType::kF32, {4000}, 0);
    for (int64_t i = 0; i < y.size(); ++i) {
      const double size = std::exp2(static_cast<double>(i / 2 % 1000) / 25 - (in_unit ? 40 : 33.6));
      y.set(i, i % 2 == 0 ? size : variant == 7 ? 1 - size : -size);
    }
    ExpectMatchesReference(SpecialUnary{.function = Function::kElementary, .variant = variant}, {y},
                           Tolerance{1e-6, 1e-37});
  }
  EXPECT_NEAR(ratio(Function::kElementary, 0, 1e9, std::tan(1e9)), 1, 1e-12);
}

// The inverse of float has separate polynomials.
TEST(SpecialUnary, ErfinvOfFloatIsAccurateUpToTheLimits) {
  constexpr int64_t kCount = 4001;
  HostTensor y = HostTensor::Full(DType::kF32, {kCount}, 0);
  for (int64_t i = 0; i < kCount; ++i) {
    const double close = std::exp2(-24.0 * static_cast<double>(i / 2) / (kCount / 2));  // the distance from 1
    y.set(i, i % 2 == 0 ? 1 - close : -close * 0.999);
  }
  ExpectMatchesReference(SpecialUnary{.function = Function::kErf, .variant = 4}, {y}, Tolerance{6e-7, 1e-30});
}

TEST(SpecialUnary, EmptyAndInvalidInputs) {
  ExpectMatchesReference(SpecialUnary{}, {HostTensor::Full(DType::kF32, {0, 3}, 0)});
  ExpectMatchesReference(SpecialUnary{}, {HostTensor::Full(DType::kF32, {}, 1)});
  ExpectError(SpecialUnary{.function = Function::kAiry, .variant = 1}, {HostTensor::Full(DType::kF32, {2}, 0)},
              {"attribute 'variant': expected less than 1 for this function, got 1"});
}

}  // namespace
}  // namespace polyop::testing

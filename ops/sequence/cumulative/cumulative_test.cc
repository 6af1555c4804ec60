// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/cumulative/cumulative.h"

#include <cmath>

#include "core/elements.h"
#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using enum Cumulative::Mode;

std::vector<double> Results(const Cumulative& op, const HostTensor& input) {
  std::vector<HostTensor> out;
  const Status status = Run(op, {input}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(Cumulative, KnownResults) {
  using Numbers = std::vector<double>;
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI64}) {
    const HostTensor line = HostTensor::Of(dtype, {4}, {2, 3, -1, 5});
    EXPECT_EQ(Results({}, line), (Numbers{2, 5, 4, 9}));
    EXPECT_EQ(Results({.exclusive = 1}, line), (Numbers{0, 2, 5, 4}));
    EXPECT_EQ(Results({.reverse = 1}, line), (Numbers{9, 7, 4, 5}));
    EXPECT_EQ(Results({.exclusive = 1, .reverse = 1}, line), (Numbers{7, 4, 5, 0}));
    EXPECT_EQ(Results({.mode = kProd}, line), (Numbers{2, 6, -6, -30}));
    EXPECT_EQ(Results({.mode = kProd, .exclusive = 1}, line), (Numbers{1, 2, 6, -6}));
    EXPECT_EQ(Results({.mode = kProd, .exclusive = 1, .reverse = 1}, line), (Numbers{-15, -5, 5, 1}));
    const HostTensor matrix = HostTensor::Of(dtype, {2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(Results({.axis = 0}, matrix), (Numbers{1, 2, 3, 5, 7, 9}));
    EXPECT_EQ(Results({.axis = 1, .mode = kProd}, matrix), (Numbers{1, 2, 6, 4, 20, 120}));
    const HostTensor scalar = HostTensor::Of(dtype, {}, {7});
    EXPECT_EQ(Results({.axis = 0}, scalar), (Numbers{7}));
    EXPECT_EQ(Results({.axis = -1, .mode = kProd, .exclusive = 1}, scalar), (Numbers{1}));
  }
}

class CumulativeTypes : public ::testing::TestWithParam<DType> {};

TEST_P(CumulativeTypes, MatchesReference) {
  const Shape kShapes[] = {{},         {1},       {7},          {33},    {1000},     {3, 17},       {17, 3},
                           {4, 16, 5}, {5, 64},   {33, 1},      {40, 7}, {65, 1, 2}, {2, 3, 40, 5}, {2, 0},
                           {0},        {3, 0, 2}, {2, 9, 1030}, {19, 48}};
  std::mt19937 rng(1);
  int64_t call = 0;
  for (const Shape& shape : kShapes) {
    for (int64_t axis = -std::max(shape.rank(), 1); axis < std::max(shape.rank(), 1); ++axis) {
      for (Cumulative::Mode mode : {kSum, kProd}) {
        const bool product = mode == kProd && IsReal(GetParam());
        const HostTensor input = HostTensor::Uniform(GetParam(), shape, rng, product ? 0.8 : -9, product ? 1.2 : 9);
        const Cumulative op{.axis = axis, .mode = mode, .exclusive = call % 2, .reverse = call / 2 % 2};
        call = call + 1 + (mode == kProd ? 1 : 0);
        SCOPED_TRACE(Concat(ToString(shape), " along ", axis, product ? ", product" : "", ", exclusive ", op.exclusive,
                            ", reverse ", op.reverse));
        ExpectMatchesReference(op, {input}, ToleranceFor(GetParam()));
      }
    }
  }
}

TEST_P(CumulativeTypes, RandomCalls) {
  std::mt19937 rng(2);
  for (int round = 0; round < Rounds(60); ++round) {
    Shape shape;
    for (int d = 1 + static_cast<int>(rng() % 3); d > 0; --d) shape.push_back(static_cast<int64_t>(1 + rng() % 40));
    HostTensor input = HostTensor::Uniform(GetParam(), shape, rng, -2, 2);
    if (IsReal(GetParam()) && round % 4 == 0) {
      for (int64_t i = 0; i < input.size(); ++i) {
        if (rng() % 20 == 0) input.set(i, std::vector<double>{NAN, INFINITY, -INFINITY, 0, -0.0}[rng() % 5]);
      }
    }
    Cumulative op{.axis = static_cast<int64_t>(rng() % static_cast<uint32_t>(shape.rank()))};
    op.mode = rng() % 2 ? kSum : kProd;
    op.exclusive = static_cast<int64_t>(rng() % 2);
    op.reverse = static_cast<int64_t>(rng() % 2);
    SCOPED_TRACE(Concat("round ", round, ", ", ToString(shape), " along ", op.axis, op.mode == kProd ? ", product" : "",
                        ", exclusive ", op.exclusive, ", reverse ", op.reverse));
    ExpectMatchesReference(op, {input}, ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CumulativeTypes,
                         ::testing::Values(DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32,
                                           DType::kI64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// A sum in single precision would not change after 2^24 ones, and be off by thousands of roundings before.
TEST(Cumulative, FloatsAreAddedInDoublePrecision) {
  constexpr int64_t kCount = (1 << 24) + 100;
  for (const Shape& shape : {Shape{kCount}, Shape{kCount, 1}}) {
    std::vector<HostTensor> out;
    ASSERT_TRUE(testing::Run(Cumulative{.axis = 0}, {HostTensor::Full(DType::kF32, shape, 1)}, &out).ok());
    EXPECT_EQ(out[0].at(kCount - 1), static_cast<double>(kCount));
  }
  std::vector<double> values(3000, 0.1);
  values[0] = 1e6;
  const HostTensor line = HostTensor::Of(DType::kF32, {3000}, values);
  const double tenth = static_cast<double>(0.1F);
  EXPECT_EQ(Results({}, line)[2999], static_cast<double>(static_cast<float>(1e6 + 2999 * tenth)));
}

TEST(Cumulative, ProductsBeyondTheTypeReturn) {
  const HostTensor line = HostTensor::Of(DType::kF32, {4}, {1e30, 1e30, 1e-30, 1e-30});
  const std::vector<double> got = Results({.mode = kProd}, line);
  EXPECT_TRUE(std::isinf(got[1]));
  EXPECT_NEAR(got[2], 1e30, 1e24);
  EXPECT_NEAR(got[3], 1, 1e-6);
}

TEST(Cumulative, NanAndInfinityReachTheElementsAfterThem) {
  const HostTensor line = HostTensor::Of(DType::kF32, {5}, {1, INFINITY, 2, -INFINITY, 3});
  const std::vector<double> sums = Results({}, line);
  EXPECT_EQ(sums[0], 1);
  EXPECT_TRUE(std::isinf(sums[1]) && std::isinf(sums[2]) && std::isnan(sums[3]) && std::isnan(sums[4]));
  const std::vector<double> products = Results({.mode = kProd}, HostTensor::Of(DType::kF32, {3}, {0, INFINITY, 1}));
  EXPECT_TRUE(products[0] == 0 && std::isnan(products[1]) && std::isnan(products[2]));
}

TEST(Cumulative, IntegersWrapAround) {
  const HostTensor line = HostTensor::Of(DType::kI32, {3}, {2147483647.0, 1, 2});
  EXPECT_EQ(Results({}, line), (std::vector<double>{2147483647.0, -2147483648.0, -2147483646.0}));
  EXPECT_EQ(Results({.mode = kProd}, line), (std::vector<double>{2147483647.0, 2147483647.0, -2}));
  std::mt19937 rng(3);
  for (DType dtype : {DType::kI32, DType::kI64}) {
    const HostTensor input = HostTensor::Uniform(dtype, {40, 50}, rng, -2e9, 2e9);
    for (int64_t axis : {0, 1}) ExpectMatchesReference(Cumulative{.axis = axis, .mode = kProd}, {input});
  }
}

TEST(Cumulative, SameAtAnyAlignment) {
  std::mt19937 rng(4);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI64}) {
    const HostTensor input = HostTensor::Uniform(dtype, {3, 40, 37}, rng);
    for (int64_t axis : {1, 2}) ExpectSameAtAnyAlignment(Cumulative{.axis = axis}, {input});
  }
}

TEST(Cumulative, RejectsInvalidInputs) {
  const HostTensor input = HostTensor::Full(DType::kF32, {2, 3}, 1);
  ExpectError(Cumulative{.axis = 2}, {input},
              {"attribute 'axis': expected a value in [-2, 2) for 'input' of shape [2, 3], got 2"});
  ExpectError(Cumulative{.axis = 1}, {HostTensor::Full(DType::kF32, {}, 1)}, {"'axis'", "[-1, 1)"});
  ExpectError(Cumulative{}, {HostTensor::Full(DType::kU8, {2}, 1)}, {"no kernel takes inputs (u8[2])"});
  const Op& op = *FindOp("cumulative");
  Params params;
  ASSERT_TRUE(MakeParams(op, {{"axis", AttrValue::Int(1)}}, &params, "polyop::CumProd").ok());
  EXPECT_EQ(static_cast<Cumulative*>(params.get())->mode, kProd);
  ExpectAttributeError(op, {{"reverse", AttrValue::Int(2)}}, {"reverse"});
}

}  // namespace
}  // namespace polyop::testing

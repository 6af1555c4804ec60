// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/argsort/argsort.h"

#include "testing/alignment.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class ArgsortRandom : public ::testing::TestWithParam<DType> {};

TEST_P(ArgsortRandom, MatchesReference) {
  std::mt19937 rng(1);
  int64_t call = 0;
  const double greatest = GetParam() == DType::kI64 ? 9e18 : GetParam() == DType::kF16 ? 6e4 : 2e9;
  const Shape shapes[] = {{0},    {1},    {2},     {17},        {300},    {9000},    {40000},
                          {0, 5}, {5, 0}, {70, 3}, {3, 2, 127}, {9, 128}, {5, 2000}, {2, 33000}};
  for (const Shape& shape : shapes) {
    for (double limit : {0.0, 3.0, greatest}) {
      SCOPED_TRACE(Concat(ToString(shape), " up to ", limit));
      const HostTensor x = HostTensor::Uniform(GetParam(), shape, rng, -limit, limit);
      ExpectMatchesReference(Argsort{.descending = call++ % 2}, {x});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ArgsortRandom,
                         ::testing::Values(DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32,
                                           DType::kI64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Argsort, SpecialNumbers) {
  std::mt19937 rng(3);
  const std::vector<double> special = {0.0, -0.0, NAN, -NAN, INFINITY, -INFINITY, 1e-40, -1e38, 7};
  for (const DType type : {DType::kF32, DType::kF64}) {
    for (const int64_t length : {9, 50, 300, 40000}) {
      HostTensor x = HostTensor::Uniform(type, {2, length}, rng, -2, 2);
      for (int64_t i = 0; i < x.size(); i += 2) x.set(i, special[rng() % special.size()]);
      ExpectMatchesReference(Argsort{}, {x});
      ExpectMatchesReference(Argsort{.descending = 1}, {x});
    }
  }
}

TEST(Argsort, IsStable) {
  const double lowest = -9223372036854775808.0;
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Argsort{}, {HostTensor::Of(DType::kI64, {6}, {5, -1, 5, lowest, -1, 0})}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{3, 1, 4, 5, 0, 2}));
}

TEST(Argsort, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  ExpectSameAtAnyAlignment(Argsort{}, {HostTensor::Uniform(DType::kI32, {20000}, rng, -100, 100)});
  ExpectSameAtAnyAlignment(Argsort{}, {HostTensor::Uniform(DType::kF16, {3, 200}, rng, -100, 100)});
}

TEST(Argsort, ScratchForOneThread) {
  std::mt19937 rng(3);
  ExpectScratchOfOneThread(
      Argsort{}, [&](int64_t rows) { return std::vector{HostTensor::Uniform(DType::kF32, {rows, 3000}, rng)}; });
}

TEST(Argsort, RejectsInvalidInputs) {
  ExpectError(Argsort{}, {HostTensor::Full(DType::kI64, {}, 0)}, {"'x': expected rank at least 1, got 0"});
  ExpectError(Argsort{}, {HostTensor::Full(DType::kU8, {2}, 0)}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing

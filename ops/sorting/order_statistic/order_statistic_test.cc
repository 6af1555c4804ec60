// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/order_statistic/order_statistic.h"

#include <cmath>

#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Statistic = OrderStatistic::Statistic;
constexpr Statistic kAll[] = {Statistic::kKth, Statistic::kMedian, Statistic::kNanMedian, Statistic::kMode};

class OrderStatisticTest : public ::testing::TestWithParam<DType> {};

TEST_P(OrderStatisticTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const int64_t length : {1, 2, 5, 64, 1000}) {
    for (const double limit : {1.0, 3.0, 1e4}) {
      const HostTensor x = HostTensor::Uniform(GetParam(), {2, 5, length}, rng, -limit, limit);
      for (const Statistic statistic : kAll) {
        ExpectMatchesReference(OrderStatistic{.statistic = statistic, .k = (length + 2) / 3}, {x});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, OrderStatisticTest,
                         ::testing::Values(DType::kF32, DType::kF64, DType::kI32, DType::kI64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

struct Selected {
  double value;
  int64_t index;
};

Selected Select(const OrderStatistic& op, const std::vector<double>& row) {
  std::vector<HostTensor> out;
  const HostTensor x = HostTensor::Of(DType::kF32, {static_cast<int64_t>(row.size())}, row);
  ExpectMatchesReference(op, {x});
  EXPECT_TRUE(testing::Run(op, {x}, &out).ok());
  return out.size() == 2 ? Selected{out[0].at(0), static_cast<int64_t>(out[1].at(0))} : Selected{0, -1};
}

TEST(OrderStatistic, EqualElements) {
  EXPECT_EQ(Select({.statistic = Statistic::kKth, .k = 2}, {3, 1, 1, 2}).index, 1);
  EXPECT_EQ(Select({.statistic = Statistic::kMedian}, {2, 1, 2, 3}).index, 0);
  EXPECT_EQ(Select({.statistic = Statistic::kMedian}, {0.0, -0.0, 0.0}).index, 0);
  const Selected mode = Select({.statistic = Statistic::kMode}, {5, 2, 5, 2, 9});
  EXPECT_EQ(mode.value, 2);
  EXPECT_EQ(mode.index, 3);
}

TEST(OrderStatistic, EveryRankOfARow) {
  std::mt19937 rng(3);
  const std::vector<double> special = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e-40, -1e38, 7};
  for (const int64_t length : {99, 100, 257}) {
    HostTensor row = HostTensor::Uniform(DType::kF32, {1, length}, rng, -2, 2);
    for (int64_t i = 0; i < length; i += 3) row.set(i, special[rng() % special.size()]);
    for (int64_t k = 1; k <= length; ++k)
      ExpectMatchesReference(OrderStatistic{.statistic = Statistic::kKth, .k = k}, {row});
  }
}

TEST(OrderStatistic, NanAndInfinities) {
  EXPECT_EQ(Select({.statistic = Statistic::kMedian}, {1, NAN, 3, NAN}).index, 1);
  EXPECT_EQ(Select({.statistic = Statistic::kNanMedian}, {1, NAN, 3, NAN, 5}).value, 3);
  EXPECT_EQ(Select({.statistic = Statistic::kNanMedian}, {NAN, NAN}).index, 0);
  EXPECT_EQ(Select({.statistic = Statistic::kKth, .k = 3}, {NAN, INFINITY, -INFINITY}).index, 0);
  EXPECT_EQ(Select({.statistic = Statistic::kMode}, {NAN, NAN, 7}).value, 7);
  EXPECT_TRUE(std::isnan(Select({.statistic = Statistic::kMode}, {NAN, NAN}).value));
}

TEST(OrderStatistic, ScratchForOneThread) {
  std::mt19937 rng(4);
  ExpectScratchOfOneThread(
      OrderStatistic{}, [&](int64_t rows) { return std::vector{HostTensor::Uniform(DType::kF32, {rows, 3000}, rng)}; });
}

TEST(OrderStatistic, EmptyAndInvalidInputs) {
  ExpectMatchesReference(OrderStatistic{}, {HostTensor::Of(DType::kF32, {0, 3}, {})});
  ExpectError(OrderStatistic{}, {HostTensor::Of(DType::kF32, {2, 0}, {})},
              {"'x': expected at least 1 element in the last dimension, got shape [2, 0]"});
  ExpectError(OrderStatistic{.statistic = Statistic::kKth, .k = 4}, {HostTensor::Full(DType::kF32, {2, 3}, 0)},
              {"'x': expected at least 4 elements in the last dimension, got shape [2, 3]"});
}

}  // namespace
}  // namespace polyop::testing

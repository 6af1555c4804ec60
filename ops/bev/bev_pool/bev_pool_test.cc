// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool/bev_pool.h"

#include <cmath>

#include "ops/bev/bev_pool_test.h"
#include "testing/alignment.h"

namespace polyop::testing {
namespace {

BevPool View(int64_t height, int64_t width) {
  BevPool op;
  op.out_height = height;
  op.out_width = width;
  return op;
}

class BevPoolRandom : public ::testing::TestWithParam<DType> {};

TEST_P(BevPoolRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(80); ++round) {
    BevScene s;
    s.channels = rng() % 3 ? rng() % 70 : 80;
    s.ranks = rng() % 200;
    s.intervals = rng() % 40;
    const BevPool op = View(1 + rng() % 9, 1 + rng() % 9);
    SCOPED_TRACE(Concat("round ", round, ": ", s.ranks, " ranks of ", s.channels, " channels"));
    ExpectMatchesReference(
        op, BevInputs(s, GetParam(), rng() % 2 ? DType::kI32 : DType::kI64, op.out_height * op.out_width, rng),
        ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BevPoolRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> Cells(const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(View(2, 2), inputs, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(BevPool, SumsRunsOfRanks) {
  EXPECT_EQ(Cells(SmallBev({3, 3, 0, 0}, {0, 2}, {2, 2})), (std::vector<double>{430, 0, 0, 210}));
  EXPECT_EQ(Cells(SmallBev({3, 3, 3, 3}, {0, 2}, {2, 2})), (std::vector<double>{0, 0, 0, 430}));  // the last wins
  EXPECT_EQ(Cells(SmallBev({1, 2, 3, 0}, {0, 4, 1}, {4, 0, 0})), (std::vector<double>{0, 640, 0, 0}));
}

TEST(BevPool, NoRanks) {
  std::mt19937 rng(2);
  BevScene s;
  s.ranks = s.intervals = 0;
  ExpectMatchesReference(View(3, 3), BevInputs(s, DType::kF32, DType::kI32, 9, rng));
  s.channels = 0;
  ExpectMatchesReference(View(3, 3), BevInputs(s, DType::kF32, DType::kI32, 9, rng));
}

TEST(BevPool, NanAffectsOnlyItsCell) {
  std::vector<HostTensor> inputs = SmallBev({3, 3, 0, 0}, {0, 2}, {2, 2});
  inputs[0].set(0, NAN);
  const std::vector<double> cells = Cells(inputs);
  EXPECT_TRUE(std::isnan(cells[3]));
  EXPECT_EQ(cells[0], 430);
}

TEST(BevPool, SameAtAnyAlignment) {
  std::mt19937 rng(3);
  BevScene s;
  s.channels = 80;
  s.ranks = 3000;
  s.intervals = 500;
  ExpectSameAtAnyAlignment(View(32, 32), BevInputs(s, DType::kF32, DType::kI32, 32 * 32, rng));
}

TEST(BevPool, RejectsInvalidInputs) {
  const auto error = [](const std::vector<HostTensor>& inputs, const std::vector<std::string>& parts) {
    ExpectError(View(2, 2), inputs, parts);
  };
  error(SmallBev({4, 0, 0, 0}, {0}, {2}), {"'ranks_bev'[0]: expected a cell in [0, 4), got 4"});
  error(SmallBev({0, 0, 0, 0}, {3}, {2}), {"interval 0: expected it within the 4 ranks, got start 3 and length 2"});
  error(SmallBev({0, 0, 0, 0}, {-1}, {2}), {"interval 0: expected it within the 4 ranks, got start -1"});
  error(SmallBev({0, 0, 0, 0}, {0}, {-1}), {"length -1"});
  std::vector<HostTensor> inputs = SmallBev({0, 0, 0, 0}, {0}, {4});
  inputs[2].set(2, 4);
  error(inputs, {"'ranks_depth'[2]: expected a value in [0, 4), got 4"});
  inputs = SmallBev({0, 0, 0, 0}, {0}, {4});
  inputs[3].set(1, -1);
  error(inputs, {"'ranks_feat'[1]: expected a value in [0, 2), got -1"});
  error({HostTensor::Full(DType::kF32, {1, 2, 1, 3}, 1), inputs[1], inputs[2], inputs[3], inputs[4], inputs[5],
         inputs[6]},
        {"'feat'", "to be W = 3"});
  const Op& record = *FindOp("bev_pool");
  ExpectAttributeError(record, {{"output_z", AttrValue::Int(2)}}, {"'output_z': expected", "got 2"});
  ExpectAttributeError(record, {{"out_width", AttrValue::Int(0)}}, {"'out_width': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing

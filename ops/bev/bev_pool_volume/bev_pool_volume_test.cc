// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool_volume/bev_pool_volume.h"

#include "ops/bev/bev_pool_test.h"
#include "testing/alignment.h"

namespace polyop::testing {
namespace {

BevPoolVolume Volume(int64_t layers, int64_t height, int64_t width) {
  BevPoolVolume op;
  op.output_z = layers;
  op.out_height = height;
  op.out_width = width;
  return op;
}

class BevPoolVolumeRandom : public ::testing::TestWithParam<DType> {};

TEST_P(BevPoolVolumeRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(40); ++round) {
    BevScene s;
    s.channels = rng() % 3 ? rng() % 70 : 80;
    s.ranks = rng() % 200;
    s.intervals = rng() % 40;
    const BevPoolVolume op = Volume(2 + rng() % 4, 1 + rng() % 9, 1 + rng() % 9);
    SCOPED_TRACE(Concat("round ", round, ": ", s.ranks, " ranks of ", s.channels, " channels"));
    ExpectMatchesReference(op,
                           BevInputs(s, GetParam(), rng() % 2 ? DType::kI32 : DType::kI64,
                                     op.output_z * op.out_height * op.out_width, rng),
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BevPoolVolumeRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Cell 7 of 2 layers of 2 x 3 is layer 1, row 0, column 1.
TEST(BevPoolVolume, CountsCellsByLayerRowAndColumn) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Volume(2, 2, 3), SmallBev({7, 7, 2, 2}, {0, 2}, {2, 2}), &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[1, 2, 2, 3, 1]");
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0, 430, 0, 0, 0, 0, 210, 0, 0, 0, 0}));
}

TEST(BevPoolVolume, NoRanks) {
  std::mt19937 rng(2);
  BevScene s;
  s.ranks = s.intervals = 0;
  ExpectMatchesReference(Volume(2, 3, 3), BevInputs(s, DType::kF32, DType::kI32, 18, rng));
  s.channels = 0;
  ExpectMatchesReference(Volume(2, 3, 3), BevInputs(s, DType::kF32, DType::kI32, 18, rng));
}

TEST(BevPoolVolume, SameAtAnyAlignment) {
  std::mt19937 rng(3);
  BevScene s;
  s.channels = 80;
  s.ranks = 3000;
  s.intervals = 500;
  ExpectSameAtAnyAlignment(Volume(4, 16, 16), BevInputs(s, DType::kF32, DType::kI32, 4 * 16 * 16, rng));
}

TEST(BevPoolVolume, RejectsInvalidInputs) {
  const BevPoolVolume op = Volume(2, 2, 2);
  ExpectError(op, SmallBev({8, 0, 0, 0}, {0}, {2}), {"'ranks_bev'[0]: expected a cell in [0, 8), got 8"});
  ExpectError(op, SmallBev({0, 0, 0, 0}, {3}, {2}),
              {"interval 0: expected it within the 4 ranks, got start 3 and length 2"});
  std::vector<HostTensor> inputs = SmallBev({0, 0, 0, 0}, {0}, {4});
  inputs[2].set(2, 4);
  ExpectError(op, inputs, {"'ranks_depth'[2]: expected a value in [0, 4), got 4"});
  inputs = SmallBev({0, 0, 0, 0}, {0}, {4});
  inputs[3].set(1, -1);
  ExpectError(op, inputs, {"'ranks_feat'[1]: expected a value in [0, 2), got -1"});
  const Op& record = *FindOp("bev_pool_volume");
  ExpectAttributeError(record, {}, {"'output_z' is missing"});
  ExpectAttributeError(record, {{"output_z", AttrValue::Int(1)}}, {"'output_z': expected", "got 1"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/quick_cumsum/quick_cumsum.h"

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

QuickCumsum Volume(int64_t images, int64_t layers, int64_t height, int64_t width) {
  QuickCumsum op;
  op.batch_size = images;
  op.dimension = layers;
  op.height = height;
  op.width = width;
  return op;
}

// Returns consecutive intervals; some are empty, and some have the same cell.
std::vector<HostTensor> Inputs(const QuickCumsum& op, int64_t points, int64_t channels, int64_t count, DType type,
                               DType index, std::mt19937& rng) {
  HostTensor positions(index, {points, 4}), starts(index, {count}), lengths(index, {count});
  const int64_t limits[4] = {op.height, op.width, op.dimension, op.batch_size};
  for (int64_t i = 0; i < positions.size(); ++i) {
    positions.set(i, static_cast<double>(rng() % static_cast<uint64_t>(limits[i % 4])));
  }
  int64_t at = 0;
  for (int64_t j = 0; j < count; ++j) {
    const int64_t length = std::min<int64_t>(points - at, static_cast<int64_t>(rng() % 9));
    starts.set(j, static_cast<double>(at));
    lengths.set(j, static_cast<double>(length));
    at += length;
  }
  return {HostTensor::Uniform(type, {points, channels}, rng), positions, lengths, starts};
}

class QuickCumsumRandom : public ::testing::TestWithParam<DType> {};

TEST_P(QuickCumsumRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(80); ++round) {
    const QuickCumsum op = Volume(1 + rng() % 3, 1 + rng() % 3, 1 + rng() % 6, 1 + rng() % 6);
    const int64_t points = rng() % 150, channels = rng() % 3 ? rng() % 70 : 80;
    SCOPED_TRACE(Concat("round ", round, ": ", points, " points of ", channels, " channels"));
    ExpectMatchesReference(
        op, Inputs(op, points, channels, rng() % 40, GetParam(), rng() % 2 ? DType::kI32 : DType::kI64, rng),
        ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QuickCumsumRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(QuickCumsum, TheLastPointDeterminesTheCell) {
  const HostTensor x = HostTensor::Of(DType::kF32, {3, 1}, {1, 10, 100});
  // (row, column, layer, image)
  const HostTensor positions = HostTensor::Of(DType::kI32, {3, 4}, {0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0});
  std::vector<HostTensor> out;
  ASSERT_TRUE(
      testing::Run(Volume(1, 1, 2, 3),
                   {x, positions, HostTensor::Of(DType::kI32, {2}, {2, 1}), HostTensor::Of(DType::kI32, {2}, {0, 2})},
                   &out)
          .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0, 100, 11, 0, 0}));
}

TEST(QuickCumsum, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  const QuickCumsum op = Volume(1, 1, 40, 40);
  ExpectSameAtAnyAlignment(op, Inputs(op, 4000, 80, 900, DType::kF32, DType::kI32, rng));
}

TEST(QuickCumsum, RejectsInvalidInputs) {
  const QuickCumsum op = Volume(1, 2, 3, 4);
  const auto with = [&](const std::vector<double>& position, double length, double start) {
    return std::vector<HostTensor>{
        HostTensor::Full(DType::kF32, {1, 2}, 1), HostTensor::Of(DType::kI32, {1, 4}, position),
        HostTensor::Full(DType::kI32, {1}, length), HostTensor::Full(DType::kI32, {1}, start)};
  };
  ExpectError(op, with({3, 0, 0, 0}, 1, 0), {"'geom_feats'[0, 0]: expected a value in [0, 3), got 3"});
  ExpectError(op, with({0, 4, 0, 0}, 1, 0), {"'geom_feats'[0, 1]: expected a value in [0, 4), got 4"});
  ExpectError(op, with({0, 0, -1, 0}, 1, 0), {"'geom_feats'[0, 2]: expected a value in [0, 2), got -1"});
  ExpectError(op, with({0, 0, 0, 1}, 1, 0), {"'geom_feats'[0, 3]: expected a value in [0, 1), got 1"});
  ExpectError(op, with({0, 0, 0, 0}, 2, 0), {"interval 0: expected it within the 1 ranks, got start 0 and length 2"});
  ExpectAttributeError(*FindOp("quick_cumsum"), {{"batch_size", AttrValue::Int(0)}},
                       {"'batch_size': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing

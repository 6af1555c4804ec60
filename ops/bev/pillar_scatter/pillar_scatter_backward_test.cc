// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/pillar_scatter/pillar_scatter_backward.h"

#include <cmath>

#include "ops/bev/pillar_scatter/pillar_scatter_test.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class PillarScatterBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(PillarScatterBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(12); ++round) {
    const DType index = rng() % 2 ? DType::kI32 : DType::kI64;
    const int64_t pillars = rng() % 60, channels = round % 4 ? rng() % 40 : 130, images = rng() % 4;
    const PillarScatterBackward op = Canvas<PillarScatterBackward>(1 + rng() % 9, 1 + rng() % 9, 1 + rng() % 3);
    const PillarScatterBackward one = Canvas<PillarScatterBackward>(op.dense_shape[0], op.dense_shape[1]);
    const auto canvas = [&](int64_t count) {
      return HostTensor::Uniform(GetParam(), {count, channels, op.dense_shape[0], op.dense_shape[1]}, rng);
    };
    SCOPED_TRACE(Concat("round ", round, ": ", pillars, " pillars of ", channels, " channels"));
    const HostTensor features = HostTensor::Uniform(GetParam(), {pillars, channels}, rng);
    const HostTensor coords = Positions(op, {pillars, 4}, index, rng);
    ExpectMatchesReference(op, {canvas(op.batch_size), features, coords, HostTensor::Absent()});
    ExpectMatchesReference(
        one, {canvas(1), features, coords, HostTensor::Full(index, {1}, static_cast<double>(rng() % (pillars + 1)))});
    HostTensor num(index, {images});
    for (int64_t n = 0; n < images; ++n) num.set(n, static_cast<double>(rng() % (pillars + 1)));
    ExpectMatchesReference(one, {canvas(images), HostTensor::Uniform(GetParam(), {images, pillars, channels}, rng),
                                 Positions(op, {images, pillars, 4}, index, rng), num});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PillarScatterBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(PillarScatterBackward, OnlyTheLastPillarAtAPositionHasAGradient) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(
      testing::Run(Canvas<PillarScatterBackward>(2, 2, 2),
                   {HostTensor::Of(DType::kF32, {2, 1, 2, 2}, {1, 2, 4, 8, 16, 32, NAN, 64}),
                    HostTensor::Of(DType::kF32, {3, 1}, {1, 2, 3}),
                    HostTensor::Of(DType::kI32, {3, 4}, {1, 9, 0, 1, 0, 9, 1, 0, 1, 9, 0, 1}), HostTensor::Absent()},
                   &out)
          .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 4, 32}));
}

TEST(PillarScatterBackward, RejectsInvalidInputs) {
  const HostTensor canvas = HostTensor::Full(DType::kF32, {1, 2, 3, 4}, 1);
  const HostTensor one = HostTensor::Full(DType::kF32, {1, 2}, 1);
  ExpectError(Canvas<PillarScatterBackward>(3, 4),
              {canvas, one, HostTensor::Of(DType::kI32, {1, 4}, {0, 0, 3, 0}), HostTensor::Absent()},
              {"'coords': expected an (image, row, column) within a canvas of shape [1, 2, 3, 4], got (0, 3, 0)"});
  ExpectError(Canvas<PillarScatterBackward>(3, 4),
              {canvas, one, HostTensor::Full(DType::kI32, {1, 4}, 0), HostTensor::Full(DType::kI32, {1}, 2)},
              {"'num': expected a value in [0, 1], got 2"});
  ExpectError(Canvas<PillarScatterBackward>(3, 5),
              {canvas, one, HostTensor::Full(DType::kI32, {1, 4}, 0), HostTensor::Absent()},
              {"'grad_canvas'", "got 4"});
}

}  // namespace
}  // namespace polyop::testing

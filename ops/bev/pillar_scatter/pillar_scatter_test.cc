// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/pillar_scatter/pillar_scatter.h"

#include "ops/bev/pillar_scatter/pillar_scatter_test.h"
#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class PillarScatterRandom : public ::testing::TestWithParam<DType> {};

TEST_P(PillarScatterRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(60); ++round) {
    const DType index = rng() % 2 ? DType::kI32 : DType::kI64;
    const int64_t pillars = rng() % 60, channels = rng() % 40;
    const PillarScatter op = Canvas<PillarScatter>(1 + rng() % 9, 1 + rng() % 9, 1 + rng() % 3);
    SCOPED_TRACE(Concat("round ", round, ": ", pillars, " pillars of ", channels, " channels"));
    ExpectMatchesReference(
        op, {HostTensor::Uniform(GetParam(), {pillars, channels}, rng), Positions(op, {pillars, 4}, index, rng)});
    const PillarScatter one = Canvas<PillarScatter>(op.dense_shape[0], op.dense_shape[1]);
    ExpectMatchesReference(
        one, {HostTensor::Uniform(GetParam(), {pillars, channels}, rng), Positions(op, {pillars, 4}, index, rng),
              HostTensor::Full(index, {1}, static_cast<double>(rng() % (pillars + 1)))});
    const int64_t images = rng() % 4;
    HostTensor num(index, {images});
    for (int64_t n = 0; n < images; ++n) num.set(n, static_cast<double>(rng() % (pillars + 1)));
    ExpectMatchesReference(one, {HostTensor::Uniform(GetParam(), {images, pillars, channels}, rng),
                                 Positions(op, {images, pillars, 4}, index, rng), num});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PillarScatterRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(PillarScatter, TheLastPillarAtAPositionWins) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Canvas<PillarScatter>(2, 2, 2),
                           {HostTensor::Of(DType::kF32, {3, 1}, {1, 2, 3}),
                            HostTensor::Of(DType::kI32, {3, 4}, {1, 9, 0, 1, 0, 9, 1, 0, 1, 9, 0, 1})},
                           &out)
                  .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0, 2, 0, 0, 3, 0, 0}));
}

TEST(PillarScatter, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  const PillarScatter op = Canvas<PillarScatter>(100, 90);
  ExpectSameAtAnyAlignment(
      op, {HostTensor::Uniform(DType::kF32, {700, 64}, rng), Positions(op, {700, 4}, DType::kI32, rng)});
}

TEST(PillarScatter, RejectsInvalidInputs) {
  const HostTensor one = HostTensor::Full(DType::kF32, {1, 2}, 1);
  const auto at = [](const std::vector<double>& position) { return HostTensor::Of(DType::kI32, {1, 4}, position); };
  const auto num = [](double n) { return HostTensor::Full(DType::kI32, {1}, n); };
  ExpectError(Canvas<PillarScatter>(3, 4), {one, at({0, 0, 3, 0})},
              {"canvas of shape [1, 2, 3, 4], got (0, 3, 0) for pillar 0"});
  ExpectError(Canvas<PillarScatter>(3, 4), {one, at({0, 0, 0, -1})}, {"got (0, 0, -1) for pillar 0"});
  ExpectError(Canvas<PillarScatter>(3, 4, 2), {one, at({2, 0, 0, 0})}, {"got (2, 0, 0) for pillar 0"});
  ExpectError(Canvas<PillarScatter>(3, 4), {one, at({0, 0, 0, 0}), num(2)},
              {"'num': expected a value in [0, 1], got 2"});
  ExpectError(Canvas<PillarScatter>(3, 4), {one, at({0, 0, 0, 0}), num(-1)},
              {"'num': expected a value in [0, 1], got -1"});
  ExpectError(Canvas<PillarScatter>(3, 4, 2), {one, at({0, 0, 0, 0}), num(1)},
              {"'batch_size': expected 1 if 'num' is given, got 2"});
  ExpectAttributeError(*FindOp("pillar_scatter"), {}, {"'dense_shape'"});
}

}  // namespace
}  // namespace polyop::testing

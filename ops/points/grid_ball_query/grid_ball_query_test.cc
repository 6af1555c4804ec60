// SPDX-License-Identifier: Apache-2.0
#include "ops/points/grid_ball_query/grid_ball_query.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

GridBallQuery Ball(double radius, int64_t samples) {
  GridBallQuery op;
  op.radius = static_cast<float>(radius);
  op.nsample = samples;
  return op;
}

TEST(GridBallQuery, FoundIndicesRepeatCyclically) {
  std::vector<HostTensor> out;
  const HostTensor xyz = HostTensor::Of(DType::kF32, {1, 4, 3}, {5, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0});
  const HostTensor query = HostTensor::Of(DType::kF32, {1, 2, 3}, {0, 0, 0, 50, 0, 0});
  ASSERT_TRUE(polyop::testing::Run(Ball(2, 5), {xyz, query}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{2, 0}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{1, 3, 1, 3, 1, 0, 0, 0, 0, 0}));
  ASSERT_TRUE(polyop::testing::Run(Ball(0, 1), {xyz, query}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0}));
}

TEST(GridBallQuery, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  const int64_t kSamples[] = {1, 2, 8, 33, 500};
  for (int round = 0; round < 60; ++round) {
    const DType dtype = kTypes[rng() % 3];
    const int64_t batches = rng() % 4, points = rng() % (rng() % 2 ? 40 : 1200), queries = rng() % 30;
    HostTensor xyz = HostTensor::Uniform(dtype, {batches, points, 3}, rng, -2, 2);
    for (int64_t i = 0; rng() % 3 == 0 && i < xyz.size(); ++i) xyz.set(i, std::floor(xyz.at(i)));
    SCOPED_TRACE(Concat("round ", round, ": ", batches, " x ", points, " points"));
    ExpectMatchesReference(Ball(0.25 * (rng() % 12), kSamples[rng() % 5]),
                           {xyz, HostTensor::Uniform(dtype, {batches, queries, 3}, rng, -2, 2)});
  }
}

// A power of two changes nothing, also where squared distances overflow float.
TEST(GridBallQuery, HugeBallsFindTheSamePoints) {
  std::mt19937 rng(2);
  const HostTensor xyz = HostTensor::Uniform(DType::kF32, {1, 3000, 3}, rng, -2, 2);
  const HostTensor queries = HostTensor::Uniform(DType::kF32, {1, 50, 3}, rng, -2, 2);
  const auto scaled = [](HostTensor t, double scale) {
    for (int64_t i = 0; i < t.size(); ++i) t.set(i, t.at(i) * scale);
    return t;
  };
  std::vector<HostTensor> want, got;
  ASSERT_TRUE(polyop::testing::Run(Ball(0.75, 40), {xyz, queries}, &want).ok());
  for (const double scale : {0x1p60, 0x1p64, 0x1p83, 0x1p126}) {
    SCOPED_TRACE(Concat("scale ", scale));
    const std::vector<HostTensor> inputs = {scaled(xyz, scale), scaled(queries, scale)};
    ASSERT_TRUE(polyop::testing::Run(Ball(0.75 * scale, 40), inputs, &got).ok());
    for (size_t o = 0; o < want.size(); ++o) EXPECT_TRUE(got[o].SameBytes(want[o])) << "output " << o;
    ExpectMatchesReference(Ball(0.75 * scale, 40), inputs);
  }
}

TEST(GridBallQuery, EmptyCloud) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(
      polyop::testing::Run(
          Ball(1, 2), {HostTensor::Full(DType::kF32, {1, 0, 3}, 0), HostTensor::Full(DType::kF32, {1, 1, 3}, 0)}, &out)
          .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{0, 0}));
}

TEST(GridBallQuery, RejectsInvalidInputs) {
  ExpectError(Ball(1, 2), {HostTensor::Full(DType::kF32, {1, 5, 3}, 1), HostTensor::Full(DType::kF32, {2, 5, 3}, 1)},
              {"'query'", "to be B = 1", "(shape [2, 5, 3] for"});
  const Op& op = *FindOp("grid_ball_query");
  ExpectAttributeError(op, {{"radius", AttrValue::Float(-1)}, {"nsample", AttrValue::Int(1)}}, {"'radius'", "-1"});
  ExpectAttributeError(op, {{"radius", AttrValue::Float(NAN)}, {"nsample", AttrValue::Int(1)}}, {"'radius'"});
  ExpectAttributeError(op, {{"radius", AttrValue::Float(1)}, {"nsample", AttrValue::Int(0)}}, {"'nsample'", "0"});
}

}  // namespace
}  // namespace polyop::testing

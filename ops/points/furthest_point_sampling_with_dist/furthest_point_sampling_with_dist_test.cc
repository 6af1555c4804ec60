// SPDX-License-Identifier: Apache-2.0
#include "ops/points/furthest_point_sampling_with_dist/furthest_point_sampling_with_dist.h"

#include <cmath>

#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

FurthestPointSamplingWithDist Sample(int64_t count) {
  FurthestPointSamplingWithDist op;
  op.num_points = count;
  return op;
}

std::vector<double> Chosen(int64_t count, const HostTensor& dist) {
  std::vector<HostTensor> out;
  EXPECT_TRUE(polyop::testing::Run(Sample(count), {dist}, &out).ok());
  return out[0].ToDoubles();
}

// dist[j, i] is used, not dist[i, j].
TEST(FurthestPointSamplingWithDist, UsesRowsOfTheChosenPoints) {
  EXPECT_EQ(Chosen(3, HostTensor::Of(DType::kF32, {1, 3, 3}, {0, 5, 7, 0, 0, 0, 0, 6, 0})),
            (std::vector<double>{0, 2, 1}));
}

TEST(FurthestPointSamplingWithDist, TiesRepetitionsAndNan) {
  EXPECT_EQ(Chosen(4, HostTensor::Full(DType::kF32, {1, 3, 3}, 0)), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(Chosen(3, HostTensor::Of(DType::kF32, {1, 3, 3}, {0, NAN, 7, 0, 0, 2, 0, 0, 0})),
            (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(Chosen(2, HostTensor::Full(DType::kF32, {1, 2, 2}, -3)), (std::vector<double>{0, 0}));
  EXPECT_EQ(Chosen(2, HostTensor::Full(DType::kF32, {1, 2, 2}, -INFINITY)), (std::vector<double>{0, 0}));
}

TEST(FurthestPointSamplingWithDist, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (int round = 0; round < 60; ++round) {
    const int64_t points = 1 + rng() % (rng() % 2 ? 9 : 80);
    HostTensor dist =
        HostTensor::Uniform(kTypes[rng() % 3], {static_cast<int64_t>(rng() % 4), points, points}, rng, -1, 9);
    for (int64_t i = 0; round % 3 == 0 && i < dist.size(); ++i) dist.set(i, std::floor(dist.at(i)));
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(dist.shape())));
    ExpectMatchesReference(Sample(rng() % 30), {dist});
  }
}

TEST(FurthestPointSamplingWithDist, ScratchForOneThread) {
  std::mt19937 rng(2);
  ExpectScratchOfOneThread(
      Sample(90), [&](int64_t clouds) { return std::vector{HostTensor::Uniform(DType::kF32, {clouds, 99, 99}, rng)}; });
}

TEST(FurthestPointSamplingWithDist, RejectsInvalidInputs) {
  ExpectError(Sample(2), {HostTensor::Full(DType::kF32, {1, 0, 0}, 0)},
              {"'dist': expected at least 1 point to choose 2 from, got 0"});
  ExpectError(Sample(2), {HostTensor::Full(DType::kF32, {1, 5, 4}, 0)},
              {"'dist'", "to be N = 5", "(shape [1, 5, 4] for"});
  ExpectAttributeError(*FindOp("furthest_point_sampling_with_dist"), {{"num_points", AttrValue::Int(-1)}},
                       {"'num_points'", "-1"});
}

}  // namespace
}  // namespace polyop::testing

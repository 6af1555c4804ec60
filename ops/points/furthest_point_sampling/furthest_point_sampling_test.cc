// SPDX-License-Identifier: Apache-2.0
#include "ops/points/furthest_point_sampling/furthest_point_sampling.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

FurthestPointSampling Sample(int64_t count) {
  FurthestPointSampling op;
  op.num_points = count;
  return op;
}

HostTensor Clouds(DType dtype, int64_t batches, int64_t points, std::mt19937& rng, double range = 2) {
  return HostTensor::Uniform(dtype, {batches, points, 3}, rng, -range, range);
}

HostTensor Lattice(HostTensor points) {
  for (int64_t i = 0; i < points.size(); ++i) points.set(i, std::floor(points.at(i)));
  return points;
}

std::vector<double> Chosen(int64_t count, const HostTensor& xyz) {
  std::vector<HostTensor> out;
  EXPECT_TRUE(polyop::testing::Run(Sample(count), {xyz}, &out).ok());
  return out[0].ToDoubles();
}

TEST(FurthestPointSampling, ChoosesTheFarthestPoint) {
  EXPECT_EQ(Chosen(4, HostTensor::Of(DType::kF32, {1, 4, 3}, {0, 0, 0, 1, 0, 0, 9, 0, 0, 5, 0, 0})),
            (std::vector<double>{0, 2, 3, 1}));
}

TEST(FurthestPointSampling, LowestIndexOfTies) {
  EXPECT_EQ(Chosen(3, HostTensor::Of(DType::kF32, {1, 4, 3}, {0, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 2})),
            (std::vector<double>{0, 1, 2}));
}

TEST(FurthestPointSampling, RepeatsWhenAllPointsAreChosen) {
  EXPECT_EQ(Chosen(4, HostTensor::Of(DType::kF32, {1, 2, 3}, {1, 1, 1, 2, 2, 2})), (std::vector<double>{0, 1, 0, 0}));
}

TEST(FurthestPointSampling, NonFinitePointsAreNotChosen) {
  EXPECT_EQ(Chosen(4, HostTensor::Of(DType::kF32, {1, 4, 3}, {NAN, 0, 0, INFINITY, 0, 0, 1, 0, 0, 2, 0, 0})),
            (std::vector<double>{0, 2, 3, 2}));
  EXPECT_EQ(Chosen(3, HostTensor::Full(DType::kF32, {1, 3, 3}, NAN)), (std::vector<double>{0, 0, 0}));
}

// Distances beyond 1e10, and distances whose square overflows or underflows fp32.
TEST(FurthestPointSampling, FarPoints) {
  EXPECT_EQ(Chosen(3, HostTensor::Of(DType::kF32, {1, 3, 3}, {0, 0, 0, 1e6, 0, 0, 3e6, 0, 0})),
            (std::vector<double>{0, 2, 1}));
  std::mt19937 rng(1);
  ExpectMatchesReference(Sample(20), {Clouds(DType::kF32, 2, 100, rng, 1e25)});
  ExpectMatchesReference(Sample(20), {Clouds(DType::kF32, 2, 100, rng, 1e-22)});
}

TEST(FurthestPointSampling, MatchesReference) {
  std::mt19937 rng(2);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (int round = 0; round < 60; ++round) {
    HostTensor xyz = Clouds(kTypes[rng() % 3], rng() % 4, 1 + rng() % (rng() % 2 ? 9 : 300), rng);
    if (rng() % 3 == 0) xyz = Lattice(xyz);
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(xyz.shape())));
    ExpectMatchesReference(Sample(rng() % 40), {xyz});
  }
}

// Clouds large enough for a tree of one, two and more levels of blocks, with ties, duplicates and non-finite points.
TEST(FurthestPointSampling, LargeClouds) {
  std::mt19937 rng(3);
  ExpectMatchesReference(Sample(150), {Clouds(DType::kF32, 2, 9000, rng)});
  ExpectMatchesReference(Sample(150), {Lattice(Clouds(DType::kF16, 1, 2500, rng, 4))});
  ExpectMatchesReference(Sample(100), {Clouds(DType::kF32, 1, 2500, rng, 1e25)});
  HostTensor holes = Clouds(DType::kF32, 3, 2300, rng);
  for (int64_t i = 0; i < holes.size(); i += 2 + static_cast<int64_t>(rng() % 9)) holes.set(i, i % 2 ? NAN : INFINITY);
  for (int64_t i = 3 * 2300; i < 2 * 3 * 2300; ++i)
    holes.set(i, i == 3 * 2300 + 2000 ? 1.0 : NAN);  // a cloud with one finite point
  ExpectMatchesReference(Sample(90), {holes});
  ExpectMatchesReference(Sample(3000), {Clouds(DType::kBF16, 1, 2100, rng)});
  ExpectMatchesReference(Sample(9), {Lattice(Clouds(DType::kF32, 2, 17003, rng))});
}

TEST(FurthestPointSampling, AttributeAliases) {
  const Op& op = *FindOp("furthest_point_sampling");
  for (const char* name : {"num_points", "npoint", "sample_num"}) {
    Params params;
    ASSERT_TRUE(MakeParams(op, {{name, AttrValue::Int(7)}}, &params, "polyop::FPSampling").ok());
    EXPECT_EQ(static_cast<const FurthestPointSampling*>(params.get())->num_points, 7);
  }
}

TEST(FurthestPointSampling, RejectsInvalidInputs) {
  ExpectError(Sample(2), {HostTensor::Full(DType::kF32, {1, 0, 3}, 0)},
              {"'xyz': expected at least 1 point to choose 2 from, got 0"});
  ExpectError(Sample(2), {HostTensor::Full(DType::kF32, {1, 5, 2}, 0)}, {"'xyz'", "(shape [1, 5, 2] for"});
  ExpectError(Sample(2), {HostTensor::Full(DType::kF32, {5, 3}, 0)}, {"'xyz': expected rank 3, got 2"});
  ExpectAttributeError(*FindOp("furthest_point_sampling"), {{"num_points", AttrValue::Int(-1)}},
                       {"'num_points'", "-1"});
  ExpectAttributeError(*FindOp("furthest_point_sampling"), {}, {"'num_points'"});
}

}  // namespace
}  // namespace polyop::testing

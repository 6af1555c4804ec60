// SPDX-License-Identifier: Apache-2.0
#include "ops/voxels/dynamic_voxelize/dynamic_voxelize.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class DynamicVoxelizeRandom : public ::testing::TestWithParam<DType> {};

TEST_P(DynamicVoxelizeRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(100); ++round) {
    const int64_t count = rng() % 4 ? rng() % 70 : rng() % 3000, columns = 3 + rng() % 4;
    HostTensor points = HostTensor::Uniform(GetParam(), {count, columns}, rng, -4.5, 4.5);
    for (int64_t i = 0; i < points.size() && round % 3 == 0; i += 1 + rng() % 40) {
      const double odd[] = {NAN, INFINITY, -INFINITY, 4, -4, 0, -0.0, 1e30};
      points.set(i, odd[rng() % 8]);
    }
    DynamicVoxelize op;
    op.voxel_size = {0.05f + static_cast<float>(rng() % 8) / 4, 0.3f, 0.7f};
    SCOPED_TRACE(Concat("round ", round, ": ", count, " points"));
    ExpectMatchesReference(op, {points});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DynamicVoxelizeRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(DynamicVoxelize, PointsOutsideHaveNoCell) {
  DynamicVoxelize op;
  op.point_cloud_range = {0, 0, 0, 4, 3.5f, 2};  // 4 x 4 x 2 cells
  const HostTensor points =
      HostTensor::Of(DType::kF32, {6, 3}, {3.9, 3.9, 1, 4, 0, 0, 0, -0.01, 0, 0, 0, 2, NAN, 0, 0, 0, 0, INFINITY});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(op, {points}, &out).ok());
  std::vector<double> expected(18, -1);
  expected[0] = 1;  // z, y, x
  expected[1] = expected[2] = 3;
  EXPECT_EQ(out[0].ToDoubles(), expected);
}

TEST(DynamicVoxelize, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  ExpectSameAtAnyAlignment(DynamicVoxelize{}, {HostTensor::Uniform(DType::kF32, {50001, 4}, rng, -4.1, 4.1)});
}

TEST(DynamicVoxelize, RejectsInvalidInputs) {
  ExpectError(DynamicVoxelize{}, {HostTensor::Full(DType::kF32, {5, 2}, 0)},
              {"'points': expected at least 3 coordinates in dimension 1, got 2 (shape [5, 2])"});
  ExpectError(DynamicVoxelize{}, {HostTensor::Full(DType::kF32, {2, 5, 4}, 0)}, {"'points': expected rank 2, got 3"});
  ExpectAttributeError(
      *FindOp("dynamic_voxelize"),
      {{"voxel_size", AttrValue::Floats({1})}, {"point_cloud_range", AttrValue::Floats({0, 0, 0, 1, 1, 0})}},
      {"'point_cloud_range'[5]: expected more than the minimum 0, got 0"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/voxels/hard_voxelize/hard_voxelize.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HardVoxelize Grid(float size, int64_t points, int64_t voxels) {
  HardVoxelize op;
  op.voxel_size = {size, size, size};
  op.max_num_points = points;
  op.max_voxels = voxels;
  return op;
}

class HardVoxelizeRandom : public ::testing::TestWithParam<DType> {};

TEST_P(HardVoxelizeRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(80); ++round) {
    const int64_t count = rng() % 4 ? rng() % 60 : rng() % 2000, columns = 3 + rng() % 3;
    HostTensor points = HostTensor::Uniform(GetParam(), {count, columns}, rng, -4.5, 4.5);
    for (int64_t i = 0; i < points.size() && round % 3 == 0; i += 1 + rng() % 40) {
      const double odd[] = {NAN, INFINITY, -INFINITY, 4, -4, 0, -0.0, 3.9999};
      points.set(i, odd[rng() % 8]);
    }
    // With the smallest size there are too many voxels for a table of all of them.
    const HardVoxelize op = Grid(rng() % 3 == 0 ? 0.01f : 0.5f + static_cast<float>(rng() % 5), 1 + rng() % 5,
                                 1 + rng() % (rng() % 2 ? 20 : 3000));
    SCOPED_TRACE(Concat("round ", round, ": ", count, " points"));
    ExpectMatchesReference(op, {points}, {0, 0}, round % 2 ? 99 : 3);
  }
}

TEST_P(HardVoxelizeRandom, CloudsMatchReference) {
  std::mt19937 rng(2);
  for (int round = 0; round < Rounds(40); ++round) {
    const HostTensor points = HostTensor::Uniform(
        GetParam(), {static_cast<int64_t>(rng() % 4), static_cast<int64_t>(rng() % 300), 4}, rng, -4.5, 4.5);
    SCOPED_TRACE(Concat("round ", round));
    ExpectMatchesReference(Grid(rng() % 4 == 0 ? 0.01f : 1, 1 + rng() % 4, 1 + rng() % 200), {points}, {0, 0},
                           round % 2 ? 99 : 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, HardVoxelizeRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<HostTensor> Voxelized(const HardVoxelize& op, const HostTensor& points) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(op, {points}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

TEST(HardVoxelize, VoxelsAreInTheOrderOfTheirFirstPoints) {
  const HostTensor points = HostTensor::Of(
      DType::kF32, {6, 4}, {3.5, 0, 0, 1, 0, 0, 0, 2, 3.6, 0, 0, 3, 3.7, 0, 0, 4, -4, -3, -2, 5, 0.5, 0.5, 0.5, 6});
  // The third point of the first voxel and the voxel of the fifth point are dropped.
  const std::vector<HostTensor> out = Voxelized(Grid(1, 2, 2), points);
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{3.5, 0, 0, 1, static_cast<double>(3.6f), 0, 0, 3,  //
                                                     0, 0, 0, 2, 0.5, 0.5, 0.5, 6}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{4, 4, 7, 4, 4, 4}));  // z, y, x
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{2, 2}));
  EXPECT_EQ(out[3].ToDoubles(), (std::vector<double>{2}));
  const std::vector<HostTensor> third = Voxelized(Grid(1, 1, 9), points);
  EXPECT_EQ(third[1].ToDoubles(), (std::vector<double>{4, 4, 7, 4, 4, 4, 2, 1, 0}));
}

TEST(HardVoxelize, UnusedVoxelsAreFilled) {
  const std::vector<HostTensor> out =
      Voxelized(Grid(4, 1, 2), HostTensor::Of(DType::kF32, {2, 1, 3}, {1, 1, 1, NAN, 1, 1}));
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{1, 0, 0, 0}));
  EXPECT_EQ(out[3].ToDoubles(), (std::vector<double>{1, 0}));
}

TEST(HardVoxelize, TheNumberOfCellsIsRounded) {
  HardVoxelize op = Grid(1, 1, 9);
  op.point_cloud_range = {0, 0, 0, 2.5f, 2.4f, 1};  // 3 x 2 x 1 cells
  const HostTensor points = HostTensor::Of(DType::kF32, {3, 3}, {2.9, 0, 0, 0, 2.2, 0, 0, 1.9, 0});
  EXPECT_EQ(Voxelized(op, points)[1].ToDoubles(), (std::vector<double>{0, 0, 2, 0, 1, 0}));
}

TEST(HardVoxelize, NoPointsAndNoVoxels) {
  EXPECT_EQ(Voxelized(Grid(1, 2, 3), HostTensor::Full(DType::kF32, {0, 4}, 0))[0].shape(), (Shape{0, 2, 4}));
  EXPECT_EQ(Voxelized(Grid(1, 2, 3), HostTensor::Full(DType::kF32, {5, 4}, 9))[0].shape(), (Shape{0, 2, 4}));
  EXPECT_EQ(Voxelized(Grid(100, 2, 3), HostTensor::Full(DType::kF32, {5, 4}, 0))[0].shape(),
            (Shape{0, 2, 4}));  // 0 cells
}

TEST(HardVoxelize, SameAtAnyAlignment) {
  std::mt19937 rng(3);
  ExpectSameAtAnyAlignment(Grid(0.1f, 32, 20000), {HostTensor::Uniform(DType::kF32, {30000, 4}, rng, -4, 4)});
}

TEST(HardVoxelize, RejectsInvalidInputs) {
  ExpectError(Grid(1, 1, 1), {HostTensor::Full(DType::kF32, {5, 2}, 0)},
              {"'points': expected at least 3 coordinates in dimension 1, got 2 (shape [5, 2])"});
  const Op& op = *FindOp("hard_voxelize");
  const auto floats = [](const std::vector<double>& v) { return AttrValue::Floats(v); };
  const std::pair<std::string, AttrValue> size{"voxel_size", floats({1, 1, 1})};
  const std::pair<std::string, AttrValue> range{"point_cloud_range", floats({0, 0, 0, 4, 4, 4})};
  ExpectAttributeError(op, {{"voxel_size", floats({1, 0, 1})}, range}, {"'voxel_size': expected", "got 0"});
  ExpectAttributeError(op, {{"voxel_size", floats({1, NAN, 1})}, range}, {"'voxel_size'"});
  ExpectAttributeError(op, {size, {"point_cloud_range", floats({0, 0, 0, 4, 0, 4})}},
                       {"'point_cloud_range'[4]: expected more than the minimum 0, got 0"});
  ExpectAttributeError(op, {{"voxel_size", floats({1e-9, 1, 1})}, range},
                       {"'voxel_size'[0]: expected fewer than 2^31 cells"});
  ExpectAttributeError(op, {{"voxel_size", floats({1e-3, 1e-3, 1e-3})}, range},
                       {"'voxel_size'[2]: expected fewer than 2^31 cells"});
  ExpectAttributeError(op, {size, range, {"max_voxels", AttrValue::Int(0)}}, {"'max_voxels': expected", "got 0"});
  ExpectAttributeError(op, {size, range, {"max_num_points", AttrValue::Int(0)}},
                       {"'max_num_points': expected", "got 0"});
  ExpectAttributeError(op, {size}, {"'point_cloud_range'"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/voxels/voxel_generator/voxel_generator.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

VoxelGenerator Pillars(int64_t voxels, int64_t points, int64_t features) {
  VoxelGenerator op;
  op.max_voxels = voxels;
  op.max_num_points_per_voxel = points;
  op.voxel_feature_num = features;
  return op;
}

class VoxelGeneratorRandom : public ::testing::TestWithParam<DType> {};

TEST_P(VoxelGeneratorRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(60); ++round) {
    const int64_t clouds = rng() % 4, count = rng() % 3 ? rng() % 40 : rng() % 900, components = 4 + rng() % 2;
    HostTensor points = HostTensor::Uniform(GetParam(), {clouds, count, components}, rng, -4.5, 4.5);
    for (int64_t i = 0; i < points.size() && round % 3 == 0; i += 1 + rng() % 40) {
      const double odd[] = {NAN, INFINITY, -INFINITY, 4, -4, 0, -0.0, 1e30};
      points.set(i, odd[rng() % 8]);
    }
    HostTensor num(rng() % 2 ? DType::kI32 : DType::kI64, {clouds});
    for (int64_t n = 0; n < clouds; ++n) num.set(n, static_cast<double>(rng() % static_cast<uint64_t>(count + 1)));
    VoxelGenerator op = Pillars(1 + rng() % 90, 1 + rng() % 5, components + 5 + rng() % 2);
    op.voxel_size = {rng() % 4 == 0 ? 0.01f : 1.0f, 0.8f, static_cast<float>(1 + rng() % 8)};
    SCOPED_TRACE(Concat("round ", round, ": ", clouds, " clouds of ", count, " points"));
    ExpectMatchesReference(op, {points, num}, ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, VoxelGeneratorRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<HostTensor> Generated(const VoxelGenerator& op, const HostTensor& points, double num) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(op, {points, HostTensor::Of(DType::kI32, {1}, {num})}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

TEST(VoxelGenerator, FeaturesOfFourComponents) {
  // Two points of one pillar, one above the range, one beyond num_points.
  const HostTensor points =
      HostTensor::Of(DType::kF32, {1, 4, 4}, {1, 2, 1, 7, 1.5, 2.25, 3, 8, 1, 2, 4, 9, -1, -1, 0, 0});
  VoxelGenerator op = Pillars(2, 3, 10);
  op.voxel_size = {1, 1, 8};
  const std::vector<HostTensor> out = Generated(op, points, 3);
  std::vector<double> expected = {1,   2,    1, 7, -0.25, -0.125, -1, -0.5, -0.5,  1,  //
                                  1.5, 2.25, 3, 8, 0.25,  0.125,  1,  0,    -0.25, 3};
  expected.resize(60, 0);
  EXPECT_EQ(out[0].ToDoubles(), expected);
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{0, 0, 6, 5, 0, 0, 0, 0}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{1}));
}

// TensorRT's plugin writes z to a different position.
TEST(VoxelGenerator, FeaturesOfFiveComponents) {
  VoxelGenerator op = Pillars(1, 1, 11);
  op.voxel_size = {1, 1, 4};
  const std::vector<HostTensor> out = Generated(op, HostTensor::Of(DType::kF32, {1, 1, 5}, {1, 2, 3, 7, 8}), 1);
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{1, 2, 3, 7, 8, 0, 0, 0, -0.5, -0.5, 5}));
}

TEST(VoxelGenerator, MorePillarsThanMaxVoxels) {
  const HostTensor points = HostTensor::Of(DType::kF32, {1, 3, 4}, {0, 0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 3});
  const std::vector<HostTensor> out = Generated(Pillars(2, 1, 9), points, 3);
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{0, 0, 4, 4, 0, 0, 4, 5}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{2}));
}

// Points are compared with the range first; half cells are rounded to even.
TEST(VoxelGenerator, HalfACellAtTheEnd) {
  VoxelGenerator op = Pillars(4, 1, 9);
  op.point_cloud_range = {0, 0, 0, 2.5f, 3.5f, 1};  // 2 x 4 cells
  const HostTensor points = HostTensor::Of(DType::kF32, {1, 3, 4}, {2.2, 0, 0, 0, 1, 3.4, 0, 0, 1, 3.6, 0, 0});
  const std::vector<HostTensor> out = Generated(op, points, 3);
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{1}));
  EXPECT_EQ(out[1].at(2), 3);
  EXPECT_EQ(out[1].at(3), 1);
}

TEST(VoxelGenerator, SameAtAnyAlignment) {
  std::mt19937 rng(3);
  ExpectSameAtAnyAlignment(Pillars(50, 20, 10), {HostTensor::Uniform(DType::kF32, {2, 3000, 4}, rng, -4, 4),
                                                 HostTensor::Full(DType::kI32, {2}, 3000)});
}

TEST(VoxelGenerator, RejectsInvalidInputs) {
  const auto points = [](int64_t components) { return HostTensor::Full(DType::kF32, {1, 3, components}, 0); };
  const HostTensor num = HostTensor::Of(DType::kI32, {1}, {3});
  ExpectError(Pillars(2, 2, 10), {points(6), num}, {"'points': expected 4 or 5 in dimension 2, got shape [1, 3, 6]"});
  ExpectError(Pillars(2, 2, 11), {points(4), num},
              {"'voxel_feature_num': expected 9 or 10 for points of 4 components, got 11"});
  ExpectError(Pillars(2, 2, 9), {points(5), num},
              {"'voxel_feature_num': expected 10 or 11 for points of 5 components, got 9"});
  ExpectError(Pillars(2, 2, 10), {points(4), HostTensor::Of(DType::kI32, {1}, {4})},
              {"'num_points'[0]: expected a value in [0, M = 3], got 4"});
  ExpectError(Pillars(2, 2, 10), {points(4), HostTensor::Of(DType::kI64, {1}, {-1})},
              {"'num_points'[0]: expected a value in [0, M = 3], got -1"});
  VoxelGenerator op = Pillars(2, 2, 10);
  op.point_cloud_range[5] = -4;
  EXPECT_NE(op.Check().message().find("'point_cloud_range'[5]: expected more than the minimum -4, got -4"),
            std::string::npos);
  op = Pillars(2, 2, 10);
  op.voxel_size[1] = 1e-8f;
  EXPECT_NE(op.Check().message().find("'voxel_size'[1]"), std::string::npos);
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/roiaware_pool3d/roiaware_pool3d.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = RoiawarePool3d::Mode;

HostTensor F32(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, shape, values);
}

class RoiawarePool3dRandom : public ::testing::TestWithParam<DType> {};

TEST_P(RoiawarePool3dRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(60); ++round) {
    const auto cells = [&] { return 1 + static_cast<int64_t>(rng() % 6); };
    RoiawarePool3d op{{cells(), cells(), cells()}, 128, round % 2 ? Mode::kMax : Mode::kAvg};
    if (rng() % 2) op.max_pts_per_voxel = 1 + static_cast<int64_t>(rng() % 5);
    const int64_t boxes = rng() % 7, points = rng() % 400, channels = rng() % 20;
    SCOPED_TRACE(Concat("round ", round, ": ", boxes, " boxes, ", points, " points, ", channels, " channels, at most ",
                        op.max_pts_per_voxel, " points"));
    ExpectMatchesReference(op,
                           {HostTensor::Uniform(GetParam(), {boxes, 7}, rng, -2, 3),
                            HostTensor::Uniform(GetParam(), {points, 3}, rng, -2, 2),
                            HostTensor::Uniform(GetParam(), {points, channels}, rng)},
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoiawarePool3dRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(RoiawarePool3d, MorePointsThanABlockVisitsAtOnce) {
  std::mt19937 rng(2);
  for (int64_t max_points : {5, 128, 100000}) {
    for (auto mode : {Mode::kAvg, Mode::kMax}) {
      const RoiawarePool3d op{{3, 2, 2}, max_points, mode};
      HostTensor rois = HostTensor::Uniform(DType::kF32, {3, 7}, rng, -1, 5);
      const double all[] = {0, 0, -2, 6, 6, 4, 0.5};  // a box that holds all points
      for (int64_t i = 0; i < 7; ++i) rois.set(i, all[i]);
      ExpectMatchesReference(op, {rois, HostTensor::Uniform(DType::kF32, {7000, 3}, rng, -2, 2),
                                  HostTensor::Uniform(DType::kF32, {7000, 3}, rng)});
    }
  }
}

std::vector<double> Pooled(const RoiawarePool3d& op, const std::vector<double>& roi, const std::vector<double>& points,
                           const std::vector<double>& features) {
  const auto count = static_cast<int64_t>(features.size());
  std::vector<HostTensor> out;
  const Status status = testing::Run(op, {F32({1, 7}, roi), F32({count, 3}, points), F32({count, 1}, features)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(RoiawarePool3d, KnownCells) {
  // z is the bottom of the box. There are two cells along x and z. A point on the top face is in the upper cell, a
  // point on a side is outside.
  const std::vector<double> roi = {10, 0, 5, 4, 2, 2, 0};
  const std::vector<double> points = {9, 0, 5, 9, 0, 5.5, 11, 0, 7, 12, 0, 6, 10, 0, 6, 9, 0, 4.9};
  const std::vector<double> features = {-1, -3, 7, 100, 9, 100};
  EXPECT_EQ(Pooled({{2, 1, 2}, 128, Mode::kMax}, roi, points, features), (std::vector<double>{-1, 0, 0, 9}));
  EXPECT_EQ(Pooled({{2, 1, 2}, 128, Mode::kAvg}, roi, points, features), (std::vector<double>{-2, 0, 0, 8}));
  EXPECT_EQ(Pooled({{2, 1, 2}, 2, Mode::kAvg}, roi, points, features), (std::vector<double>{-1, 0, 0, 7}));
  EXPECT_EQ(Pooled({{2, 1, 2}, 1, Mode::kAvg}, roi, points, features), (std::vector<double>{0, 0, 0, 0}));
}

TEST(RoiawarePool3d, CellsRotateWithTheBox) {
  const double quarter = std::acos(-1.0) / 2;
  // Rotated by 90 degrees, the x axis of the box is the y axis of the world.
  EXPECT_EQ(Pooled({{2, 1, 1}, 128, Mode::kMax}, {0, 0, 0, 4, 2, 2, quarter}, {0, -1, 1, 0, 1, 1}, {5, 6}),
            (std::vector<double>{5, 6}));
}

TEST(RoiawarePool3d, ABoxWithoutHeightContainsItsPlane) {
  EXPECT_EQ(Pooled({{1, 1, 3}, 128, Mode::kMax}, {0, 0, 1, 2, 2, 0, 0}, {0, 0, 1, 0, 0, 1.1}, {5, 6}),
            (std::vector<double>{5, 0, 0}));
}

TEST(RoiawarePool3d, NanAndInfinity) {
  const std::vector<double> roi = {0, 0, 0, 2, 2, 2, 0}, points = {0, 0, 1, 0.5, 0, 1, NAN, 0, 1, 0, INFINITY, 1};
  const double lowest = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(Pooled({{1, 1, 1}, 9, Mode::kMax}, roi, points, {NAN, 2, 8, 9}), (std::vector<double>{2}));
  EXPECT_EQ(Pooled({{1, 1, 1}, 9, Mode::kMax}, roi, points, {NAN, NAN, 8, 9}), (std::vector<double>{0}));
  EXPECT_EQ(Pooled({{1, 1, 1}, 9, Mode::kMax}, roi, points, {lowest, NAN, 8, 9}), (std::vector<double>{lowest}));
  EXPECT_TRUE(std::isnan(Pooled({{1, 1, 1}, 9, Mode::kAvg}, roi, points, {NAN, 2, 8, 9})[0]));
  const HostTensor boxes = F32({3, 7}, {0, 0, 0, INFINITY, 2, 2, 0, 0, 0, NAN, 2, 2, 2, 0, 0, 0, 0, 2, 2, INFINITY, 0});
  for (Mode mode : {Mode::kMax, Mode::kAvg}) {
    ExpectMatchesReference(RoiawarePool3d{{2, 3, 2}, 128, mode},
                           {boxes, F32({4, 3}, points), F32({4, 1}, {1, -INFINITY, 3, 4})});
  }
}

TEST(RoiawarePool3d, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(RoiawarePool3d{}, {f32({2, 7}), f32({5, 3}), f32({4, 2})}, {"'features'", "to be N = 5"});
  ExpectError(RoiawarePool3d{}, {f32({2, 6}), f32({5, 3}), f32({5, 2})},
              {"'rois'", "expected dimension 1 to be 7, got 6"});
  const Op& op = *FindOp("roiaware_pool3d");
  ExpectAttributeError(op, {{"out_size", AttrValue::Ints({1, 1, 257})}}, {"'out_size': expected", "got 257"});
  ExpectAttributeError(op, {{"out_size", AttrValue::Int(2)}, {"max_pts_per_voxel", AttrValue::Int(0)}},
                       {"'max_pts_per_voxel': expected", "got 0"});
  ExpectAttributeError(op, {{"out_size", AttrValue::Int(2)}, {"mode", AttrValue::String("sum")}}, {"'mode'", "sum"});
}

}  // namespace
}  // namespace polyop::testing

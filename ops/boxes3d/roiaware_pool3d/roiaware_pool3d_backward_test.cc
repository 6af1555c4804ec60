// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/roiaware_pool3d/roiaware_pool3d_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = RoiawarePool3d::Mode;

RoiawarePool3dBackward Backward(const std::array<int64_t, 3>& out_size, int64_t max_points, Mode mode) {
  RoiawarePool3dBackward op;
  op.out_size = out_size;
  op.max_pts_per_voxel = max_points;
  op.mode = mode;
  return op;
}

std::vector<HostTensor> Inputs(const RoiawarePool3dBackward& op, DType dtype, int64_t boxes, int64_t points,
                               int64_t channels, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {boxes, op.out_size[0], op.out_size[1], op.out_size[2], channels}, rng),
          HostTensor::Uniform(dtype, {boxes, 7}, rng, -2, 3), HostTensor::Uniform(dtype, {points, 3}, rng, -2, 2),
          HostTensor::Uniform(dtype, {points, channels}, rng)};
}

class RoiawarePool3dBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(RoiawarePool3dBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(40); ++round) {
    const auto cells = [&] { return 1 + static_cast<int64_t>(rng() % 6); };
    const int64_t max_points = rng() % 2 ? 128 : 1 + static_cast<int64_t>(rng() % 5);
    const RoiawarePool3dBackward op =
        Backward({cells(), cells(), cells()}, max_points, round % 2 ? Mode::kMax : Mode::kAvg);
    const int64_t boxes = rng() % 7, points = rng() % 400, channels = rng() % 40;
    SCOPED_TRACE(Concat("round ", round, ": ", boxes, " boxes, ", points, " points, ", channels, " channels, at most ",
                        max_points, " points"));
    ExpectMatchesReference(op, Inputs(op, GetParam(), boxes, points, channels, rng), ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoiawarePool3dBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// More boxes than are processed at a time.
TEST(RoiawarePool3dBackward, ManyBoxes) {
  std::mt19937 rng(2);
  for (auto mode : {Mode::kAvg, Mode::kMax}) {
    const RoiawarePool3dBackward op = Backward({2, 1, 2}, 128, mode);
    ExpectMatchesReference(op, Inputs(op, DType::kF32, 150, 200, 5, rng), {1e-5, 1e-4});
  }
}

// A box with more points than a block visits at once, so that a cell takes points of several rounds.
TEST(RoiawarePool3dBackward, ManyPointsInABox) {
  std::mt19937 rng(5);
  for (auto mode : {Mode::kAvg, Mode::kMax}) {
    for (int64_t max_points : {100, 10000}) {
      const RoiawarePool3dBackward op = Backward({2, 1, 3}, max_points, mode);
      std::vector<HostTensor> inputs = Inputs(op, DType::kF32, 1, 5000, 3, rng);
      inputs[1] = HostTensor::Of(DType::kF32, {1, 7}, {0, 0, -2, 4, 4, 4, 0.5});
      ExpectMatchesReference(op, inputs);
    }
  }
}

// The average is linear, and the gradient of the maximum selects features: <grad, pool(x)> = <backward(grad), x>.
TEST(RoiawarePool3dBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(3);
  for (auto mode : {Mode::kAvg, Mode::kMax}) {
    const RoiawarePool3dBackward op = Backward({3, 2, 2}, 20, mode);
    const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, 30, 900, 19, rng);
    std::vector<HostTensor> grad, pooled;
    ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
    ASSERT_TRUE(testing::Run(static_cast<const RoiawarePool3d&>(op), {inputs[1], inputs[2], inputs[3]}, &pooled).ok());
    double left = 0, right = 0, size = 0;
    for (int64_t i = 0; i < pooled[0].size(); ++i) left += pooled[0].at(i) * inputs[0].at(i);
    for (int64_t i = 0; i < grad[0].size(); ++i) right += grad[0].at(i) * inputs[3].at(i);
    for (int64_t i = 0; i < pooled[0].size(); ++i) size += std::fabs(pooled[0].at(i));
    EXPECT_NEAR(left, right, 1e-3);
    EXPECT_GT(size, 1);  // boxes contain points
  }
}

// A box of one cell contains three points and not the fourth. Both features of the first two points are equal.
TEST(RoiawarePool3dBackward, TiesAndNan) {
  const HostTensor roi = HostTensor::Of(DType::kF32, {1, 7}, {0, 0, 0, 4, 4, 4, 0});
  const HostTensor points = HostTensor::Of(DType::kF32, {4, 3}, {0, 0, 1, 1, 0, 1, 0, 1, 1, 9, 9, 9});
  const HostTensor grad = HostTensor::Of(DType::kF32, {1, 1, 1, 1, 2}, {6, NAN});
  const auto backward = [&](Mode mode, const std::vector<double>& features) {
    std::vector<HostTensor> out;
    const HostTensor of_points = HostTensor::Of(DType::kF32, {4, 2}, features);
    ExpectMatchesReference(Backward({1, 1, 1}, 128, mode), {grad, roi, points, of_points});
    EXPECT_TRUE(testing::Run(Backward({1, 1, 1}, 128, mode), {grad, roi, points, of_points}, &out).ok());
    return out[0];
  };
  const HostTensor average = backward(Mode::kAvg, {1, 1, 1, 1, 0, 0, 7, 7});
  const HostTensor maximum = backward(Mode::kMax, {1, 1, 1, 1, 0, 0, 7, 7});
  for (int64_t p = 0; p < 4; ++p) {
    EXPECT_EQ(average.at(2 * p), p < 3 ? 2 : 0) << p;
    EXPECT_EQ(std::isnan(average.at(2 * p + 1)), p < 3) << p;
    EXPECT_EQ(maximum.at(2 * p), p == 0 ? 6 : 0) << p;
    EXPECT_EQ(std::isnan(maximum.at(2 * p + 1)), p == 0) << p;
  }
  const HostTensor with_nan = backward(Mode::kMax, {NAN, NAN, 1, NAN, -INFINITY, NAN, 7, 7});
  EXPECT_EQ(with_nan.ToDoubles(), (std::vector<double>{0, 0, 6, 0, 0, 0, 0, 0}));
}

TEST(RoiawarePool3dBackward, EmptyAndInvalidInputs) {
  std::mt19937 rng(4);
  const RoiawarePool3dBackward op = Backward({2, 3, 1}, 128, Mode::kMax);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, 0, 5, 3, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, 2, 0, 3, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, 2, 5, 0, rng));
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, 2, 5, 3, rng);
  inputs[0] = HostTensor::Full(DType::kF32, {2, 2, 2, 1, 3}, 0);
  ExpectError(op, inputs, {"'grad_pooled'", "out_size[1]", "got 2"});
  inputs[3] = HostTensor::Full(DType::kF32, {4, 3}, 0);
  ExpectError(op, inputs, {"'features'", "N = 5", "got 4"});
}

}  // namespace
}  // namespace polyop::testing

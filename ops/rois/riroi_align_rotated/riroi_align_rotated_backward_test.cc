// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/riroi_align_rotated/riroi_align_rotated_backward.h"

#include <cmath>
#include <numbers>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

RiRoiAlignRotatedBackward Backward(int64_t rows, int64_t columns, int64_t samples, int64_t orientations) {
  RiRoiAlignRotatedBackward op;
  op.pooled_height = rows;
  op.pooled_width = columns;
  op.spatial_scale = 0.5f;
  op.num_samples = samples;
  op.num_orientations = orientations;
  return op;
}

std::vector<HostTensor> Inputs(const RiRoiAlignRotatedBackward& op, DType dtype, const Shape& map, int64_t rois,
                               std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {rois, map[1], op.pooled_height, op.pooled_width}, rng),
          HostTensor::Uniform(dtype, map, rng), RandomRotatedRois(dtype, rois, map[0], 20, rng)};
}

class RiRoiAlignRotatedBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(RiRoiAlignRotatedBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t samples : {0, 1, 2}) {
    for (int64_t orientations : {1, 4, 8}) {
      for (const Shape& map : {Shape{2, 8, 9, 13}, Shape{1, 24, 17, 7}, Shape{3, 16, 1, 1}}) {
        SCOPED_TRACE(Concat(ToString(map), ", ", samples, " samples, ", orientations, " orientations"));
        RiRoiAlignRotatedBackward op = Backward(3, 2, samples, orientations);
        op.clockwise = samples == 1;
        ExpectMatchesReference(op, Inputs(op, GetParam(), map, 11, rng), ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RiRoiAlignRotatedBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The average is linear in the map, so <grad, pool(x)> = <backward(grad), x>. The map has several bands of rows.
TEST(RiRoiAlignRotatedBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const RiRoiAlignRotatedBackward op = Backward(20, 20, 2, 5);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 20, 70, 40}, 30, rng);
  std::vector<HostTensor> grad, pooled;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(static_cast<const RiRoiAlignRotated&>(op), {inputs[1], inputs[2]}, &pooled).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < pooled[0].size(); ++i) left += pooled[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grad[0].size(); ++i) right += grad[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-2);
}

TEST(RiRoiAlignRotatedBackward, EmptyInputs) {
  std::mt19937 rng(3);
  const RiRoiAlignRotatedBackward op = Backward(2, 2, 2, 3);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {2, 3, 5, 4}, 0, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 0, 4}, 2, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 0, 4, 4}, 2, rng));
}

// Boxes at pixels (1, 1) and (3, 3). The first is rotated by one orientation and a half, which affects two channels of
// its feature; the second is not rotated.
TEST(RiRoiAlignRotatedBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  const RiRoiAlignRotatedBackward op = Backward(1, 1, 1, 4);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 8, 6, 6}, 2, rng), grad;
  inputs[2] = HostTensor::Of(DType::kF32, {2, 6}, {0, 2, 2, 2, 2, 0.75 * std::numbers::pi, 0, 6, 6, 2, 2, 0});
  inputs[0].set(2, NAN);      // orientation 2 of the first feature is half of 1 and half of 2
  inputs[0].set(8 + 5, NAN);  // orientation 1 of the second feature
  ExpectMatchesReference(op, inputs);
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  for (int64_t i = 0; i < grad[0].size(); ++i) {
    const bool nan = i == 36 + 7 || i == 2 * 36 + 7 || i == 5 * 36 + 21;
    EXPECT_EQ(std::isnan(grad[0].at(i)), nan) << i;
  }
}

TEST(RiRoiAlignRotatedBackward, NanInfiniteAndHugeBoxes) {
  std::mt19937 rng(5);
  const RiRoiAlignRotatedBackward op = Backward(2, 3, 2, 3);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 6, 8, 8}, 6, rng);
  inputs[2] = HostTensor::Of(DType::kF32, {6, 6},
                             {0, NAN, 4,   4, 4, 0,   0, 4, 4, INFINITY, 4, 0,         0, 4, 4, 4, 4, NAN,
                              0, 1e9, 1e9, 4, 4, 0.3, 0, 4, 4, 4,        4, -INFINITY, 0, 4, 4, 4, 4, 3e38});
  ExpectMatchesReference(op, inputs);
}

TEST(RiRoiAlignRotatedBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const RiRoiAlignRotatedBackward op = Backward(2, 2, 2, 4);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 8, 5, 4}, 2, rng);
  inputs[2].set(6, 2);
  ExpectError(op, inputs, {"'rois'[1, 0]: expected a batch index in [0, 2), got 2"});
  ExpectError(Backward(2, 2, 2, 3), inputs, {"'input': expected a multiple of num_orientations = 3 channels, got 8"});
  inputs[0] = HostTensor::Full(DType::kF32, {2, 8, 2, 3}, 0);
  ExpectError(op, inputs, {"'grad_output'", "(pooled_width) = 2"});
}

}  // namespace
}  // namespace polyop::testing

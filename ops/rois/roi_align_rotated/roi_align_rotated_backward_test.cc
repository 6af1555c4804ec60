// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_align_rotated/roi_align_rotated_backward.h"

#include <cmath>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

RoiAlignRotatedBackward Backward(int64_t rows, int64_t columns, int64_t ratio, bool aligned, bool clockwise = false) {
  RoiAlignRotatedBackward op;
  op.output_height = rows;
  op.output_width = columns;
  op.spatial_scale = 0.5f;
  op.sampling_ratio = ratio;
  op.aligned = aligned;
  op.clockwise = clockwise;
  return op;
}

std::vector<HostTensor> Inputs(const RoiAlignRotatedBackward& op, DType dtype, const Shape& map, int64_t rois,
                               std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {rois, map[1], op.output_height, op.output_width}, rng),
          HostTensor::Uniform(dtype, map, rng), RandomRotatedRois(dtype, rois, map[0], 40, rng)};
}

class RoiAlignRotatedBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(RoiAlignRotatedBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t ratio : {0, 1, 2}) {
    for (bool aligned : {false, true}) {
      for (bool clockwise : {false, true}) {
        for (const Shape& map : {Shape{2, 3, 9, 13}, Shape{1, 17, 33, 7}, Shape{1, 16, 1, 1}}) {
          SCOPED_TRACE(ToString(map) + " ratio " + std::to_string(ratio));
          const RoiAlignRotatedBackward op = Backward(3, 4, ratio, aligned, clockwise);
          ExpectMatchesReference(op, Inputs(op, GetParam(), map, 11, rng), ToleranceFor(GetParam()));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoiAlignRotatedBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The average is linear in the map, so <grad, pool(x)> = <backward(grad), x>. The map has several bands of rows.
TEST(RoiAlignRotatedBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const RoiAlignRotatedBackward op = Backward(20, 20, 2, true);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 20, 70, 40}, 30, rng);
  std::vector<HostTensor> grad, pooled;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(static_cast<const RoiAlignRotated&>(op), {inputs[1], inputs[2]}, &pooled).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < pooled[0].size(); ++i) left += pooled[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grad[0].size(); ++i) right += grad[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-2);
}

TEST(RoiAlignRotatedBackward, GivesZerosWithoutBoxes) {
  std::mt19937 rng(3);
  const RoiAlignRotatedBackward op = Backward(2, 2, 2, true);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {2, 3, 5, 4}, 0, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 0, 4}, 2, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 0, 4, 4}, 2, rng));
}

TEST(RoiAlignRotatedBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  const RoiAlignRotatedBackward op = Backward(1, 1, 1, true);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 2, 6, 6}, 2, rng);
  inputs[0].set(0, NAN);
  // The boxes' centres are the pixels (1, 1) and (3, 3).
  inputs[2] = HostTensor::Of(DType::kF32, {2, 6}, {0, 3, 3, 2, 2, 0, 0, 7, 7, 2, 2, 0});
  ExpectMatchesReference(op, inputs);
  std::vector<HostTensor> grad;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  for (int64_t i = 0; i < grad[0].size(); ++i) EXPECT_EQ(std::isnan(grad[0].at(i)), i == 7) << i;
}

// A huge box has more taps than are kept.
TEST(RoiAlignRotatedBackward, HugeAndInfiniteBoxes) {
  std::mt19937 rng(5);
  const RoiAlignRotatedBackward op = Backward(2, 3, 0, true);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 8, 8}, 4, rng);
  inputs[2] = HostTensor::Of(
      DType::kF32, {4, 6}, {0, 4, 4, 1e9, 1e9, 0.7, 0, 4, 4, 3e6, 40, 2, 0, NAN, 4, 4, 4, 0, 0, 4, 4, 4, 4, INFINITY});
  ExpectMatchesReference(op, inputs);
}

TEST(RoiAlignRotatedBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const RoiAlignRotatedBackward op = Backward(2, 2, 2, true);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 3, 5, 4}, 2, rng);
  inputs[2].set(6, 2);
  ExpectError(op, inputs, {"'rois'[1, 0]: expected a batch index in [0, 2), got 2"});
  inputs[0] = HostTensor::Full(DType::kF32, {2, 3, 2, 3}, 0);
  ExpectError(op, inputs, {"'grad_output'", "(output_width) = 2"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_align/roi_align_backward.h"

#include <cmath>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

RoiAlignBackward Backward(int64_t rows, int64_t columns, int64_t ratio, bool aligned,
                          RoiAlign::Mode mode = RoiAlign::Mode::kAvg) {
  RoiAlignBackward op;
  op.output_height = rows;
  op.output_width = columns;
  op.spatial_scale = 0.5f;
  op.sampling_ratio = ratio;
  op.aligned = aligned;
  op.mode = mode;
  return op;
}

// The inputs of a gradient: random gradients, a random map, and random boxes.
std::vector<HostTensor> Inputs(const RoiAlignBackward& op, DType dtype, const Shape& map, int64_t rois,
                               std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {rois, map[1], op.output_height, op.output_width}, rng),
          HostTensor::Uniform(dtype, map, rng), RandomRois(dtype, rois, map[0], rng)};
}

class RoiAlignBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(RoiAlignBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (auto mode : {RoiAlign::Mode::kAvg, RoiAlign::Mode::kMax}) {
    for (int64_t ratio : {0, 1, 2, 3}) {
      for (bool aligned : {false, true}) {
        for (const Shape& map : {Shape{2, 3, 9, 13}, Shape{1, 17, 33, 7}, Shape{1, 16, 1, 1}, Shape{3, 1, 20, 20}}) {
          SCOPED_TRACE(ToString(map) + " ratio " + std::to_string(ratio));
          const RoiAlignBackward op = Backward(3, 4, ratio, aligned, mode);
          ExpectMatchesReference(op, Inputs(op, GetParam(), map, 11, rng), ToleranceFor(GetParam()));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoiAlignBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The average is linear in the map, so <grad, pool(x)> = <backward(grad), x>.
TEST(RoiAlignBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const RoiAlignBackward op = Backward(7, 7, 2, true);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 20, 70, 40}, 40, rng);
  std::vector<HostTensor> grad, pooled;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(static_cast<const RoiAlign&>(op), {inputs[1], inputs[2]}, &pooled).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < pooled[0].size(); ++i) left += pooled[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grad[0].size(); ++i) right += grad[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-3);
}

TEST(RoiAlignBackward, GivesZerosWithoutBoxes) {
  std::mt19937 rng(3);
  const RoiAlignBackward op = Backward(2, 2, 2, true);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {2, 3, 5, 4}, 0, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 0, 4}, 2, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 0, 4, 4}, 2, rng));
}

TEST(RoiAlignBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  const RoiAlignBackward op = Backward(1, 1, 1, true);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 2, 6, 6}, 2, rng);
  for (int k = 0; k < 5; ++k) {
    inputs[2].set(k, k == 0 ? 0 : k < 3 ? 2 : 4);      // samples pixel (1, 1)
    inputs[2].set(5 + k, k == 0 ? 0 : k < 3 ? 6 : 8);  // samples pixel (3, 3)
  }
  inputs[0].set(0, NAN);
  ExpectMatchesReference(op, inputs);
  std::vector<HostTensor> grad;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  for (int64_t i = 0; i < grad[0].size(); ++i) EXPECT_EQ(std::isnan(grad[0].at(i)), i == 7) << i;
}

TEST(RoiAlignBackward, EndsAtOnceForAHugeBox) {
  std::mt19937 rng(5);
  const RoiAlignBackward op = Backward(1, 3, 0, true);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 8, 8}, 2, rng);
  inputs[2] = HostTensor::Of(DType::kF32, {2, 5}, {0, -5e8, -5e8, 5e8, 5e8, 0, NAN, 0, INFINITY, 3});
  ExpectMatchesReference(op, inputs);
}

// Samples outside of the map are 0, so no pixel of a map of zeros is larger.
TEST(RoiAlignBackward, LosesTheGradientOfAMaximumOutside) {
  std::mt19937 rng(7);
  const RoiAlignBackward op = Backward(1, 1, 2, true, RoiAlign::Mode::kMax);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 2, 4, 4}, 1, rng);
  inputs[1] = HostTensor::Full(DType::kF32, {1, 2, 4, 4}, 0);
  inputs[2] = HostTensor::Of(DType::kF32, {1, 5}, {0, 2, 2, 14, 14});
  ExpectMatchesReference(op, inputs);
  std::vector<HostTensor> grad;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  for (int64_t i = 0; i < grad[0].size(); ++i) EXPECT_EQ(grad[0].at(i), 0) << i;
}

TEST(RoiAlignBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const RoiAlignBackward op = Backward(2, 2, 2, true);
  const std::vector<HostTensor> good = Inputs(op, DType::kF32, {2, 3, 5, 4}, 2, rng);
  const auto with = [&](size_t i, const HostTensor& tensor) {
    std::vector<HostTensor> inputs = good;
    inputs[i] = tensor;
    return inputs;
  };
  ExpectError(op, with(0, HostTensor::Full(DType::kF32, {2, 3, 2, 3}, 0)), {"'grad_output'", "(output_width) = 2"});
  ExpectError(op, with(0, HostTensor::Full(DType::kF32, {3, 3, 2, 2}, 0)), {"'rois'", "R = 3"});
  ExpectError(op, with(1, HostTensor::Full(DType::kF32, {2, 4, 5, 4}, 0)), {"'input'", "C = 3"});
  ExpectError(op, with(2, HostTensor::Full(DType::kF32, {2, 5}, 2)), {"'rois'[0, 0]"});
}

}  // namespace
}  // namespace polyop::testing

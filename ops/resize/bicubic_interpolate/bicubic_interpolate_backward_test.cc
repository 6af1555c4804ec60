// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_interpolate/bicubic_interpolate_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

BicubicInterpolateBackward Backward(float vertical, float horizontal, bool align_corners) {
  BicubicInterpolateBackward op;
  op.scale_factor = {vertical, horizontal};
  op.align_corners = align_corners;
  return op;
}

std::vector<HostTensor> Inputs(const BicubicInterpolateBackward& op, DType dtype, const Shape& shape,
                               std::mt19937& rng) {
  const Shape output{shape[0], shape[1], static_cast<int64_t>(static_cast<float>(shape[2]) * op.scale_factor[0]),
                     static_cast<int64_t>(static_cast<float>(shape[3]) * op.scale_factor[1])};
  return {HostTensor::Uniform(dtype, output, rng), HostTensor::Uniform(dtype, shape, rng)};
}

class BicubicInterpolateBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(BicubicInterpolateBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 3, 5, 7}, Shape{1, 1, 17, 1}, Shape{1, 2, 1, 33},
                             Shape{1, 1, 3, 150}, Shape{0, 3, 4, 4}, Shape{1, 0, 4, 4}}) {
    for (const auto& [v, h] : {std::pair{2.0f, 2.0f}, {1.5f, 2.5f}, {1.0f, 1.0f}, {0.5f, 3.0f}, {9.0f, 0.3f}}) {
      for (bool align : {false, true}) {
        SCOPED_TRACE(ToString(shape) + " by " + std::to_string(v) + ", " + std::to_string(h));
        const BicubicInterpolateBackward op = Backward(v, h, align);
        ExpectMatchesReference(op, Inputs(op, GetParam(), shape, rng), ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BicubicInterpolateBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Resizing is linear, so <grad, resize(x)> = <backward(grad), x>.
TEST(BicubicInterpolateBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  for (bool align : {false, true}) {
    const BicubicInterpolateBackward op = Backward(2.3f, 0.7f, align);
    const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 5, 40, 70}, rng);
    std::vector<HostTensor> grad, resized;
    ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
    ASSERT_TRUE(testing::Run(static_cast<const BicubicInterpolate&>(op), {inputs[1]}, &resized).ok());
    EXPECT_NEAR(InnerProduct(resized[0], inputs[0]), InnerProduct(grad[0], inputs[1]), 1e-3);
  }
}

TEST(BicubicInterpolateBackward, GivesZerosWithoutOutputs) {
  std::mt19937 rng(3);
  const BicubicInterpolateBackward op = Backward(0.01f, 2, false);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 2, 5, 4}, rng);
  ExpectMatchesReference(op, inputs);
  std::vector<HostTensor> grad;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  for (int64_t i = 0; i < grad[0].size(); ++i) EXPECT_EQ(grad[0].at(i), 0);
}

TEST(BicubicInterpolateBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  const BicubicInterpolateBackward same = Backward(1, 1, false), twice = Backward(2, 2, false);
  std::vector<HostTensor> inputs = Inputs(same, DType::kF32, {1, 1, 9, 40}, rng), grad;
  inputs[0].set(3 * 40 + 20, NAN);
  ASSERT_TRUE(testing::Run(same, inputs, &grad).ok());
  for (int64_t i = 0; i < grad[0].size(); ++i) EXPECT_EQ(std::isnan(grad[0].at(i)), i == 3 * 40 + 20) << i;

  inputs = Inputs(twice, DType::kF32, {1, 1, 9, 40}, rng);
  inputs[0].set(9 * 80 + 41, INFINITY);  // at (4.25, 20.25): rows 3 to 6, columns 19 to 22
  ASSERT_TRUE(testing::Run(twice, inputs, &grad).ok());
  for (int64_t i = 0; i < grad[0].size(); ++i) {
    const int64_t y = i / 40, x = i % 40;
    EXPECT_EQ(std::isfinite(grad[0].at(i)), y < 3 || y > 6 || x < 19 || x > 22) << y << ", " << x;
    EXPECT_FALSE(std::isnan(grad[0].at(i))) << y << ", " << x;
  }
}

TEST(BicubicInterpolateBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  const BicubicInterpolateBackward op = Backward(2, 3, false);
  const std::vector<HostTensor> good = Inputs(op, DType::kF32, {2, 3, 5, 4}, rng);
  ExpectError(op, {HostTensor::Full(DType::kF32, {2, 3, 10, 11}, 0), good[1]},
              {"'grad_output'", "floor(W*scale_factor[1]) = 12"});
  ExpectError(op, {good[0], HostTensor::Full(DType::kF32, {2, 4, 5, 4}, 0)}, {"'input'", "C = 3"});
}

}  // namespace
}  // namespace polyop::testing

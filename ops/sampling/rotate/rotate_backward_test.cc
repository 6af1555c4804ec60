// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/rotate/rotate_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Interpolation = Rotate::Interpolation;

RotateBackward Backward(Interpolation interpolation, int64_t mask = -1) {
  RotateBackward op;
  op.interpolation = interpolation;
  op.output_mask = mask;
  return op;
}

std::vector<HostTensor> Inputs(const Shape& shape, double angle, double x, double y, DType dtype, DType of_angle,
                               std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, shape, rng), HostTensor::Uniform(dtype, shape, rng),
          HostTensor::Of(of_angle, {}, {angle}), HostTensor::Of(of_angle, {2}, {x, y})};
}

class RotateBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(RotateBackwardTest, MatchesReferenceForTheImage) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 5;  // positions up to 100 are rounded to floats
  for (auto interpolation : {Interpolation::kBilinear, Interpolation::kNearest}) {
    for (const Shape& shape : {Shape{3, 9, 13}, Shape{1, 1, 1}, Shape{20, 33, 40}, Shape{5, 80, 70}}) {
      for (const double angle : {0.0, 30.0, 90.0, 725.0}) {
        ExpectMatchesReference(Backward(interpolation, 1), Inputs(shape, angle, 4.5, 3.25, GetParam(), GetParam(), rng),
                               tolerance);
      }
    }
  }
}

// The derivatives jump where a position is a pixel, so the angle is not a right one. The gradients are sums over all
// pixels, of both signs.
TEST_P(RotateBackwardTest, MatchesReferenceForTheAngleAndTheCenter) {
  std::mt19937 rng(2);
  for (const DType of_angle : {GetParam(), DType::kF32}) {
    for (const Shape& shape : {Shape{3, 9, 13}, Shape{20, 13, 10}}) {
      const std::vector<HostTensor> inputs = Inputs(shape, 33, 4.5, 3.25, GetParam(), of_angle, rng);
      for (const int64_t mask : {2, 4, 6, 7}) {
        const double each = ToleranceFor(of_angle).relative;
        ExpectMatchesReference(Backward(Interpolation::kBilinear, mask), inputs,
                               {std::max(each, ToleranceFor(GetParam()).relative), 5e-3});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RotateBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Rotation is linear in the image. The gradients of the angle and the center are compared with differences.
TEST(RotateBackward, IsTheDerivativeOfTheForwardPass) {
  std::mt19937 rng(3);
  const RotateBackward op = Backward(Interpolation::kBilinear);
  const std::vector<HostTensor> inputs = Inputs({2, 9, 7}, 21, 4.1, 3.3, DType::kF64, DType::kF64, rng);
  RunOptions options;
  options.device = Device::kReference;
  const auto value_at = [&](const HostTensor& angle, const HostTensor& center) {
    std::vector<HostTensor> output;
    EXPECT_TRUE(testing::Run(static_cast<const Rotate&>(op), {inputs[1], angle, center}, &output, options).ok());
    double sum = 0;
    for (int64_t i = 0; i < output[0].size(); ++i) sum += output[0].at(i) * inputs[0].at(i);
    return sum;
  };
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(op, inputs, &grads, options).ok());
  double product = 0;
  for (int64_t i = 0; i < grads[0].size(); ++i) product += grads[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(product, value_at(inputs[2], inputs[3]), 1e-6);
  constexpr double kStep = 1e-6;
  const auto difference = [&](size_t input, int64_t i) {
    std::vector<HostTensor> more = inputs, less = inputs;
    more[input].set(i, more[input].at(i) + kStep);
    less[input].set(i, less[input].at(i) - kStep);
    return (value_at(more[2], more[3]) - value_at(less[2], less[3])) / (2 * kStep);
  };
  EXPECT_NEAR(grads[1].at(0), difference(2, 0), 1e-6);
  EXPECT_NEAR(grads[2].at(0), difference(3, 0), 1e-6);
  EXPECT_NEAR(grads[2].at(1), difference(3, 1), 1e-6);
}

// Rotated by 180 degrees about (2, 3), pixel (2, 1) comes from (3, 2).
TEST(RotateBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = Inputs({2, 8, 8}, 180, 2, 3, DType::kF32, DType::kF32, rng), grads;
  inputs[0].set(64 + 2 * 8 + 1, NAN);
  ASSERT_TRUE(testing::Run(Backward(Interpolation::kNearest), inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 64 + 3 * 8 + 2) << i;
  EXPECT_EQ(grads[1].at(0), 0);
  EXPECT_EQ(grads[2].at(0), 0);
}

TEST(RotateBackward, EmptyNanAndInvalidInputs) {
  std::mt19937 rng(5);
  const auto inputs = [&](const Shape& shape, double angle, double x) {
    return Inputs(shape, angle, x, 2, DType::kF32, DType::kF32, rng);
  };
  for (const Shape& shape : {Shape{0, 4, 4}, Shape{3, 0, 4}, Shape{3, 4, 0}}) {
    ExpectMatchesReference(Backward(Interpolation::kBilinear), inputs(shape, 10, 2));
  }
  for (auto interpolation : {Interpolation::kBilinear, Interpolation::kNearest}) {
    for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      ExpectMatchesReference(Backward(interpolation), inputs({2, 4, 4}, 45, value));
      ExpectMatchesReference(Backward(interpolation), inputs({2, 4, 4}, value, 2));
    }
  }
  std::vector<HostTensor> bad = inputs({2, 4, 4}, 45, 1);
  bad[3] = HostTensor::Full(DType::kF32, {3}, 0);
  ExpectError(RotateBackward{}, bad, {"'center'", "expected dimension 0 to be 2, got 3"});
  bad[0] = HostTensor::Full(DType::kF32, {2, 4, 5}, 0);
  ExpectError(RotateBackward{}, bad, {"'img'", "W = 5", "got 4"});
}

}  // namespace
}  // namespace polyop::testing

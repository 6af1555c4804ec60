// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/carafe/carafe_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

CarafeBackward Backward(int64_t kernel, int64_t groups, float scale) {
  CarafeBackward op;
  op.kernel_size = kernel;
  op.group_size = groups;
  op.scale_factor = scale;
  return op;
}

std::vector<HostTensor> Inputs(const CarafeBackward& op, DType dtype, const Shape& features, std::mt19937& rng) {
  const int64_t scale = static_cast<int64_t>(op.scale_factor), rows = features[2] * scale,
                columns = features[3] * scale;
  const int64_t masks = op.kernel_size * op.kernel_size * op.group_size;
  return {HostTensor::Uniform(dtype, {features[0], features[1], rows, columns}, rng),
          HostTensor::Uniform(dtype, features, rng),
          HostTensor::Uniform(dtype, {features[0], masks, rows, columns}, rng)};
}

class CarafeBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(CarafeBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of up to 225 products
  for (int64_t kernel : {1, 3, 5, 7}) {
    for (float scale : {1.0f, 2.0f, 3.0f, 5.0f}) {
      for (int64_t groups : {1, 2}) {
        for (const Shape& features : {Shape{2, 6, 5, 7}, Shape{1, 2, 1, 1}, Shape{1, 38, 11, 4}, Shape{1, 2, 3, 40}}) {
          if (features[1] == 38 && kernel * scale > 15) continue;  // slow
          SCOPED_TRACE(ToString(features) + " kernel " + std::to_string(kernel));
          const CarafeBackward op = Backward(kernel, groups, scale);
          ExpectMatchesReference(op, Inputs(op, GetParam(), features, rng), tolerance);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CarafeBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// CARAFE is linear in the features and in the masks.
TEST(CarafeBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const CarafeBackward op = Backward(5, 2, 2);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 20, 13, 19}, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(static_cast<const Carafe&>(op), {inputs[1], inputs[2]}, &output).ok());
  EXPECT_NEAR(InnerProduct(output[0], inputs[0]), InnerProduct(grads[0], inputs[1]), 1e-2);
  EXPECT_NEAR(InnerProduct(output[0], inputs[0]), InnerProduct(grads[1], inputs[2]), 1e-2);
}

TEST(CarafeBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(3);
  const CarafeBackward op = Backward(3, 1, 2);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 4, 5}, rng);
  ExpectOnlyRequestedGradients(op, inputs, 2);
}

TEST(CarafeBackward, Empty) {
  std::mt19937 rng(4);
  const CarafeBackward op = Backward(3, 1, 2);
  for (const Shape& features : {Shape{0, 3, 4, 5}, Shape{2, 0, 4, 5}, Shape{2, 3, 0, 5}, Shape{2, 3, 4, 0}}) {
    ExpectMatchesReference(op, Inputs(op, DType::kF32, features, rng));
  }
}

TEST(CarafeBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(5);
  const CarafeBackward op = Backward(3, 1, 2);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 2, 4, 5}, rng);
  inputs[0].set(80 + 3, NAN);  // channel 1, output pixel (0, 3), whose window is around pixel (0, 1)
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  for (int64_t i = 0; i < 40; ++i) {
    const int64_t y = i / 5 % 4, x = i % 5;
    EXPECT_EQ(std::isnan(grads[0].at(i)), i >= 20 && y <= 1 && x <= 2) << i;
  }
  for (int64_t i = 0; i < grads[1].size(); ++i) {
    EXPECT_EQ(std::isnan(grads[1].at(i)), i % 80 == 3 && i / 80 >= 3) << i;  // not the window's row above the image
  }
}

TEST(CarafeBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const CarafeBackward op = Backward(3, 2, 2);
  const std::vector<HostTensor> good = Inputs(op, DType::kF32, {1, 4, 4, 5}, rng);
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectError(op, {f32({1, 4, 8, 9}), good[1], good[2]}, {"'grad_output'", "got 9"});
  ExpectError(op, {good[0], good[1], f32({1, 9, 8, 10})}, {"'masks'", "got 9"});
  ExpectError(op, {f32({1, 3, 8, 10}), f32({1, 3, 4, 5}), good[2]},
              {"'features': expected a number of channels divisible by group_size = 2, got 3"});
}

}  // namespace
}  // namespace polyop::testing

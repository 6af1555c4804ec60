// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/instance_norm/instance_norm_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(DType dtype, const Shape& shape, std::mt19937& rng, double mean = 0) {
  return {HostTensor::Uniform(dtype, shape, rng), HostTensor::Uniform(dtype, shape, rng, mean - 1, mean + 1),
          HostTensor::Uniform(dtype, {shape[1]}, rng)};
}

class InstanceNormBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(InstanceNormBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{2, 3, 7}, Shape{1, 20, 5, 9}, Shape{3, 1, 40, 60}, Shape{2, 2, 3, 4, 5},
                             Shape{1, 2, 70000}, Shape{2, 0, 4}, Shape{0, 2, 4}, Shape{2, 2, 0}}) {
    SCOPED_TRACE(ToString(shape));
    const Tolerance tolerance = ToleranceFor(GetParam());
    ExpectAllMasksMatchReference(InstanceNormBackward{}, Inputs(GetParam(), shape, rng), 3,
                                 {tolerance.relative, tolerance.absolute * 2});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, InstanceNormBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(InstanceNormBackward, OnlyRequestedGradients) {
  std::mt19937 rng(2);
  ExpectOnlyRequestedGradients(InstanceNormBackward{}, Inputs(DType::kF32, {2, 3, 8, 8}, rng), 3);
}

// Elements far from 0 lose no digits.
TEST(InstanceNormBackward, LargeMeans) {
  std::mt19937 rng(3);
  ExpectMatchesReference(InstanceNormBackward{}, Inputs(DType::kF32, {1, 2, 5000}, rng, 1e4), {1e-4, 1e-4});
}

// The output does not change if a channel is shifted, so its gradients have the sum 0; nor, without epsilon, if it is
// scaled.
TEST(InstanceNormBackward, IsOrthogonalToShiftsAndScales) {
  std::mt19937 rng(4);
  InstanceNormBackward op;
  op.epsilon = 0;
  const std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 1, 500}, rng);
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  EXPECT_NEAR(InnerProduct(grads[0], HostTensor::Full(DType::kF32, {1, 1, 500}, 1)), 0, 1e-4);
  EXPECT_NEAR(InnerProduct(grads[0], inputs[1]), 0, 1e-4);
}

TEST(InstanceNormBackward, KeepsNanInItsChannel) {
  std::mt19937 rng(5);
  std::vector<HostTensor> inputs = Inputs(DType::kF32, {2, 2, 30}, rng), grads;
  inputs[0].set(35, NAN);  // sample 0, channel 1
  ASSERT_TRUE(testing::Run(InstanceNormBackward{}, inputs, &grads).ok());
  for (int64_t i = 0; i < 120; ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i / 30 == 1) << i;
  for (int64_t c = 0; c < 2; ++c) {
    EXPECT_EQ(std::isnan(grads[1].at(c)), c == 1);
    EXPECT_EQ(std::isnan(grads[2].at(c)), c == 1);
  }
}

TEST(InstanceNormBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  std::vector<HostTensor> inputs = Inputs(DType::kF32, {2, 3, 8}, rng);
  inputs[0] = HostTensor::Full(DType::kF32, {2, 3, 7}, 0);
  ExpectError(InstanceNormBackward{}, inputs, {"'input'", "L = 7"});
  inputs = Inputs(DType::kF32, {2, 3, 8}, rng);
  inputs[2] = HostTensor::Full(DType::kF32, {2}, 0);
  ExpectError(InstanceNormBackward{}, inputs, {"'scale'", "C = 3"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/psa_mask/psa_mask_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

PsaMaskBackward Backward(PsaMask::Type type, const std::array<int64_t, 2>& size) {
  PsaMaskBackward op;
  op.psa_type = type;
  op.mask_size = size;
  return op;
}

std::vector<HostTensor> Inputs(const PsaMaskBackward& op, DType dtype, const Shape& map, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {map[0], map[1] * map[2], map[1], map[2]}, rng),
          HostTensor::Uniform(dtype, {map[0], op.mask_size[0] * op.mask_size[1], map[1], map[2]}, rng)};
}

class PsaMaskBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(PsaMaskBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (auto type : {PsaMask::Type::kCollect, PsaMask::Type::kDistribute}) {
    for (const auto& size : {std::array<int64_t, 2>{1, 1}, {3, 5}, {9, 13}, {7, 1}, {15, 31}}) {
      for (const Shape& map : {Shape{2, 5, 7}, Shape{1, 1, 9}, Shape{1, 8, 3}, Shape{0, 4, 4}}) {
        const PsaMaskBackward op = Backward(type, size);
        ExpectMatchesReference(op, Inputs(op, GetParam(), map, rng), {0, 0});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PsaMaskBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The operator is linear, so <grad, f(x)> = <backward(grad), x>.
TEST(PsaMaskBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  for (auto type : {PsaMask::Type::kCollect, PsaMask::Type::kDistribute}) {
    const PsaMaskBackward op = Backward(type, {5, 9});
    const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 6, 7}, rng);
    std::vector<HostTensor> grad, spread;
    ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
    ASSERT_TRUE(testing::Run(static_cast<const PsaMask&>(op), {inputs[1]}, &spread).ok());
    double left = 0, right = 0;
    for (int64_t i = 0; i < spread[0].size(); ++i) left += spread[0].at(i) * inputs[0].at(i);
    for (int64_t i = 0; i < grad[0].size(); ++i) right += grad[0].at(i) * inputs[1].at(i);
    EXPECT_NEAR(left, right, 1e-4);
  }
}

// Two adjacent pixels, each with a mask of three columns. The elements that refer to no pixel have the gradient 0.
TEST(PsaMaskBackward, TakesThePixelsGradients) {
  const HostTensor grad = HostTensor::Of(DType::kF32, {1, 2, 1, 2}, {1, NAN, 3, 4});
  const HostTensor input = HostTensor::Full(DType::kF32, {1, 3, 1, 2}, 0);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Backward(PsaMask::Type::kCollect, {1, 3}), {grad, input}, &out).ok());
  const double expected[6] = {0, NAN, 1, 4, 3, 0};
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(std::isnan(out[0].at(i)), std::isnan(expected[i])) << i;
    if (!std::isnan(expected[i])) {
      EXPECT_EQ(out[0].at(i), expected[i]) << i;
    }
  }
}

TEST(PsaMaskBackward, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  const PsaMaskBackward op = Backward(PsaMask::Type::kCollect, {1, 3});
  ExpectError(op, {f32({1, 9, 3, 3}), f32({1, 4, 3, 3})}, {"'input'", "expected dimension 1", "got 4", "= 3"});
  ExpectError(op, {f32({1, 8, 3, 3}), f32({1, 3, 3, 3})}, {"'grad_output'", "expected dimension 1", "got 8"});
}

}  // namespace
}  // namespace polyop::testing

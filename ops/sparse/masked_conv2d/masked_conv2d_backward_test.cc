// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/masked_conv2d/masked_conv2d_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

MaskedConv2dBackward Backward(const std::array<int64_t, 2>& padding) {
  MaskedConv2dBackward op;
  op.padding = padding;
  return op;
}

std::vector<HostTensor> Inputs(const MaskedConv2d& op, DType dtype, const Shape& features, const Shape& weight,
                               std::mt19937& rng) {
  const int64_t rows = features[2] + 2 * op.padding[0] - weight[2] + 1,
                columns = features[3] + 2 * op.padding[1] - weight[3] + 1;
  return {HostTensor::Uniform(dtype, {1, weight[0], rows, columns}, rng), HostTensor::Uniform(dtype, features, rng),
          HostTensor::Uniform(dtype, {1, rows, columns}, rng), HostTensor::Uniform(dtype, weight, rng),
          HostTensor::Uniform(dtype, {weight[0]}, rng)};
}

class MaskedConv2dBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(MaskedConv2dBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 20;  // sums of hundreds of products
  for (const Shape& weight : {Shape{5, 3, 3, 3}, Shape{70, 16, 5, 5}, Shape{17, 33, 1, 1}, Shape{3, 4, 2, 3}}) {
    for (const auto& padding : {std::array<int64_t, 2>{0, 0}, {2, 3}}) {
      const MaskedConv2dBackward op = Backward(padding);
      std::vector<HostTensor> inputs = Inputs(op, GetParam(), {1, weight[1], 9, 13}, weight, rng);
      ExpectMatchesReference(op, inputs, tolerance);
      inputs[2] = HostTensor::Uniform(DType::kI32, inputs[2].shape(), rng, 0, 2).Cast(DType::kBool);
      inputs[4] = HostTensor::Absent();
      ExpectMatchesReference(op, inputs, tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MaskedConv2dBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MaskedConv2dBackward, GroupsOfChannels) {
  std::mt19937 rng(2);
  // A block of 16 channels of this image and its gradient have 38 MB: each block is a group.
  std::vector<HostTensor> inputs = Inputs(MaskedConv2d{}, DType::kF32, {1, 20, 500, 600}, {2, 20, 1, 1}, rng);
  for (int64_t p = 0; p < inputs[2].size(); ++p) inputs[2].set(p, p % 5000 == 0);
  ExpectMatchesReference(MaskedConv2dBackward{}, inputs, {.relative = 1e-5, .absolute = 1e-4});
}

TEST(MaskedConv2dBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(3);
  const MaskedConv2dBackward op = Backward({1, 1});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 20, 12, 17}, {7, 20, 3, 3}, rng);
  inputs[4] = HostTensor::Absent();
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(static_cast<const MaskedConv2d&>(op), {inputs.begin() + 1, inputs.end()}, &output).ok());
  const double expected = InnerProduct(output[0], inputs[0]);
  EXPECT_NEAR(expected, InnerProduct(grads[0], inputs[1]), 1e-2);
  EXPECT_NEAR(expected, InnerProduct(grads[1], inputs[3]), 1e-2);
}

TEST(MaskedConv2dBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(4);
  const std::vector<HostTensor> inputs = Inputs(MaskedConv2d{}, DType::kF16, {1, 5, 6, 7}, {3, 5, 3, 3}, rng);
  ExpectOnlyRequestedGradients(MaskedConv2dBackward{}, inputs, 3);
}

TEST(MaskedConv2dBackward, KeepsNanWhereItBelongs) {
  const HostTensor grad = HostTensor::Of(DType::kF32, {1, 1, 1, 5}, {1, NAN, NAN, 1, 1});
  const HostTensor features = HostTensor::Of(DType::kF32, {1, 1, 1, 5}, {1, 1, 1, NAN, 1});
  const HostTensor mask = HostTensor::Of(DType::kF32, {1, 1, 5}, {1, 0, 1, 0, 1});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(MaskedConv2dBackward{},
                           {grad, features, mask, HostTensor::Full(DType::kF32, {1, 1, 1, 1}, 3), HostTensor::Absent()},
                           &out)
                  .ok());
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(out[0].at(i)), i == 2) << i;
  EXPECT_EQ(out[0].at(0), 3);
  EXPECT_EQ(out[0].at(3), 0);
  EXPECT_TRUE(std::isnan(out[1].at(0)));
  EXPECT_TRUE(std::isnan(out[2].at(0)));
}

TEST(MaskedConv2dBackward, EmptyInputsAndMasks) {
  std::mt19937 rng(5);
  const MaskedConv2dBackward op = Backward({1, 1});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 6, 6}, {4, 3, 3, 3}, rng);
  inputs[2] = HostTensor::Full(DType::kF32, {1, 6, 6}, 0);
  ExpectMatchesReference(op, inputs);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 0, 6, 6}, {4, 0, 3, 3}, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 0, 2}, {4, 3, 1, 1}, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 6, 6}, {0, 3, 3, 3}, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 6, 6}, {2, 3, 3, 0}, rng));
}

TEST(MaskedConv2dBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  std::vector<HostTensor> inputs = Inputs(MaskedConv2d{}, DType::kF32, {1, 3, 6, 6}, {4, 3, 3, 3}, rng);
  inputs[0] = HostTensor::Full(DType::kF32, {1, 4, 4, 5}, 0);
  ExpectError(MaskedConv2dBackward{}, inputs, {"'grad_output'", "got 5"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/neighborhood_attention/neighborhood_attention_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

NeighborhoodAttentionBackward Op(int64_t kernel, int64_t dilation = 1, int64_t causal = 0) {
  NeighborhoodAttentionBackward op;
  op.kernel_size = {{kernel}, 1};
  op.dilation = {{dilation}, 1};
  op.is_causal = {{causal}, 1};
  return op;
}

std::vector<HostTensor> Inputs(const Shape& shape, int64_t columns, DType dtype, std::mt19937& rng) {
  Shape values = shape;
  values[values.rank() - 1] = columns;
  return {HostTensor::Uniform(dtype, values, rng), HostTensor::Uniform(dtype, shape, rng),
          HostTensor::Uniform(dtype, shape, rng), HostTensor::Uniform(dtype, values, rng)};
}

class NeighborhoodAttentionBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(NeighborhoodAttentionBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;
  const auto matches = [&](const NeighborhoodAttentionBackward& op, const Shape& shape, int64_t columns) {
    SCOPED_TRACE(ToString(shape));
    ExpectMatchesReference(op, Inputs(shape, columns, GetParam(), rng), tolerance);
  };
  matches(Op(3), {2, 9, 2, 8}, 8);
  matches(Op(4, 2), {1, 11, 3, 5}, 7);
  matches(Op(5, 3, 1), {1, 17, 2, 16}, 3);
  matches(Op(3), {1, 5, 6, 2, 33}, 33);
  matches(Op(2, 1, 1), {1, 3, 4, 5, 2, 8}, 8);
  matches(Op(7), {1, 8, 9, 1, 36}, 72);
  matches(Op(6, 2), {1, 13, 12, 1, 3}, 50);
}

INSTANTIATE_TEST_SUITE_P(Types, NeighborhoodAttentionBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(NeighborhoodAttentionBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(2);
  ExpectOnlyRequestedGradients(Op(3), Inputs({2, 9, 2, 8}, 5, DType::kF32, rng), 3);
}

TEST(NeighborhoodAttentionBackward, ScratchForOneThread) {
  std::mt19937 rng(5);
  ExpectScratchOfOneThread(Op(3), [&](int64_t images) { return Inputs({images, 50, 2, 8}, 8, DType::kF32, rng); });
}

// The output is linear in the values.
TEST(NeighborhoodAttentionBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = Inputs({2, 7, 8, 3, 12}, 12, DType::kF32, rng);
  const NeighborhoodAttentionBackward op = Op(5);
  std::vector<HostTensor> grads, out;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  ASSERT_TRUE(
      testing::Run(static_cast<const NeighborhoodAttention&>(op), {inputs.begin() + 1, inputs.end()}, &out).ok());
  EXPECT_NEAR(InnerProduct(out[0], inputs[0]), InnerProduct(grads[2], inputs[3]), 1e-3);
}

TEST(NeighborhoodAttentionBackward, EmptyAndNotANumber) {
  std::mt19937 rng(4);
  for (const Shape& shape : {Shape{0, 4, 2, 3}, Shape{2, 4, 0, 3}, Shape{2, 4, 2, 0}}) {
    ExpectMatchesReference(Op(3), Inputs(shape, 5, DType::kF32, rng));
  }
  ExpectMatchesReference(Op(3), Inputs({2, 4, 2, 3}, 0, DType::kF32, rng));
  for (size_t i = 0; i < 4; ++i) {
    std::vector<HostTensor> inputs = Inputs({1, 9, 2, 4}, 4, DType::kF32, rng);
    inputs[i].set(37, NAN);
    ExpectMatchesReference(Op(3), inputs);
  }
}

TEST(NeighborhoodAttentionBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  ExpectError(Op(3, 2), Inputs({1, 5, 1, 2}, 2, DType::kF32, rng), {"kernel_size * dilation = 6"});
}

}  // namespace
}  // namespace polyop::testing

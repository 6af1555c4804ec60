// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/causal_conv1d/causal_conv1d_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(const Shape& x, int64_t width, DType dtype, DType weights, std::mt19937& rng) {
  const Shape state = {x[0], x[1], width - 1};
  return {HostTensor::Uniform(dtype, x, rng),        HostTensor::Uniform(dtype, state, rng),
          HostTensor::Uniform(dtype, x, rng),        HostTensor::Uniform(weights, {x[1], width}, rng),
          HostTensor::Uniform(weights, {x[1]}, rng), HostTensor::Uniform(dtype, state, rng)};
}

CausalConv1dBackward Silu() {
  CausalConv1dBackward op;
  op.activation = CausalConv1d::Activation::kSilu;
  return op;
}

class CausalConv1dBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(CausalConv1dBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 20;
  for (const DType weights : {GetParam(), DType::kF32}) {
    for (const int64_t width : {1, 2, 4, 7}) {
      for (const Shape& x : {Shape{2, 3, 17}, Shape{1, 5, 1}, Shape{3, 40, 3}, Shape{1, 2, 300}}) {
        SCOPED_TRACE(Concat("width ", width, ", ", ToString(x)));
        const std::vector<HostTensor> inputs = Inputs(x, width, GetParam(), weights, rng);
        ExpectMatchesReference(CausalConv1dBackward{}, inputs, tolerance);
        ExpectMatchesReference(Silu(), inputs, tolerance);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CausalConv1dBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(CausalConv1dBackward, ScratchForOneThread) {
  std::mt19937 rng(9);
  ExpectScratchOfOneThread(
      Silu(), [&](int64_t channels) { return Inputs({2, channels, 900}, 4, DType::kF32, DType::kF32, rng); });
}

TEST(CausalConv1dBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(2);
  ExpectOnlyRequestedGradients(Silu(), Inputs({2, 5, 9}, 4, DType::kF32, DType::kF32, rng), 4);
}

TEST(CausalConv1dBackward, OptionalInputs) {
  std::mt19937 rng(3);
  for (int absent = 1; absent < 4; ++absent) {
    std::vector<HostTensor> inputs = Inputs({2, 5, 9}, 4, DType::kF32, DType::kF32, rng);
    for (size_t i = 0; i < 2; ++i) {
      if ((absent >> i & 1) != 0) inputs[4 + i] = HostTensor::Absent();
    }
    ExpectMatchesReference(Silu(), inputs);
  }
}

// Without a bias, the output is linear in x and the state.
TEST(CausalConv1dBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = Inputs({2, 9, 50}, 4, DType::kF32, DType::kF32, rng), grads, out;
  inputs[4] = HostTensor::Absent();
  ASSERT_TRUE(testing::Run(CausalConv1dBackward{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(CausalConv1d{}, {inputs.begin() + 2, inputs.end()}, &out).ok());
  const double product = InnerProduct(out[0], inputs[0]) + InnerProduct(out[1], inputs[1]);
  EXPECT_NEAR(product, InnerProduct(grads[0], inputs[2]) + InnerProduct(grads[3], inputs[5]), 1e-3);
}

TEST(CausalConv1dBackward, EmptyAndNotANumber) {
  std::mt19937 rng(5);
  for (const Shape& x : {Shape{0, 3, 4}, Shape{2, 0, 4}, Shape{2, 3, 0}}) {
    ExpectMatchesReference(Silu(), Inputs(x, 3, DType::kF32, DType::kF32, rng));
  }
  std::vector<HostTensor> inputs = Inputs({2, 3, 9}, 3, DType::kF32, DType::kF32, rng);
  inputs[2].set(4, NAN);
  inputs[0].set(20, INFINITY);
  ExpectMatchesReference(Silu(), inputs);
}

TEST(CausalConv1dBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  std::vector<HostTensor> inputs = Inputs({2, 3, 9}, 3, DType::kF32, DType::kF32, rng);
  inputs[1] = HostTensor::Full(DType::kF32, {2, 3, 1}, 0);
  ExpectError(Silu(), inputs, {"'grad_final_state'"});
}

}  // namespace
}  // namespace polyop::testing

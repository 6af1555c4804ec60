// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/correlation/correlation_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

CorrelationBackward Backward(const Correlation& forward) {
  CorrelationBackward op;
  static_cast<Correlation&>(op) = forward;
  return op;
}

std::vector<HostTensor> Inputs(const Correlation& op, DType dtype, const Shape& map, std::mt19937& rng) {
  const HostTensor first = HostTensor::Uniform(dtype, map, rng), second = HostTensor::Uniform(dtype, map, rng);
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(op, {first, second}, &out).ok());
  return {HostTensor::Uniform(dtype, out[0].shape(), rng), first, second};
}

class CorrelationBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(CorrelationBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  const Correlation ops[] = {
      {},
      {.kernel_size = {3, 3}, .max_displacement = 2, .padding = {1, 1}},
      {.kernel_size = {1, 2}, .max_displacement = 4, .stride = {2, 1}, .dilation_patch = {1, 2}},
      {.kernel_size = {3, 2}, .max_displacement = 1, .stride = {1, 3}, .padding = {2, 0}, .dilation = {1, 2}},
      {.kernel_size = {1, 1}, .max_displacement = 20, .padding = {0, 3}, .dilation_patch = {2, 1}},
      {.kernel_size = {2, 1}, .max_displacement = 0, .stride = {3, 2}, .dilation = {2, 1}},
      {.kernel_size = {1, 1}, .max_displacement = 2, .dilation_patch = {1 << 20, 1 << 20}},
  };
  for (const Correlation& forward : ops) {
    for (const Shape& map : {Shape{2, 3, 7, 9}, Shape{1, 33, 4, 21}, Shape{1, 1, 3, 5}}) {
      SCOPED_TRACE(
          Concat(ToString(map), ", kernel ", forward.kernel_size[0], ", displacement ", forward.max_displacement));
      const CorrelationBackward op = Backward(forward);
      const std::vector<HostTensor> inputs = Inputs(op, GetParam(), map, rng);
      ExpectAllMasksMatchReference(op, inputs, 2, ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CorrelationBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The operator is linear in each input, so <grad, f(a, b)> = <grad_a, a> = <grad_b, b>.
TEST(CorrelationBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const CorrelationBackward op = Backward({.kernel_size = {1, 3}, .max_displacement = 3, .padding = {0, 1}});
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 9, 12, 40}, rng);
  std::vector<HostTensor> grad, products;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(static_cast<const Correlation&>(op), {inputs[1], inputs[2]}, &products).ok());
  double output = 0, first = 0, second = 0;
  for (int64_t i = 0; i < products[0].size(); ++i) output += products[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < inputs[1].size(); ++i) {
    first += grad[0].at(i) * inputs[1].at(i);
    second += grad[1].at(i) * inputs[2].at(i);
  }
  EXPECT_NEAR(first, output, 1e-2);
  EXPECT_NEAR(second, output, 1e-2);
}

TEST(CorrelationBackward, NanGradientsStayLocal) {
  std::mt19937 rng(3);
  const CorrelationBackward op = Backward({.kernel_size = {1, 3}, .max_displacement = 3, .padding = {0, 1}});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 4, 9}, rng);
  inputs[0].set(40, NAN);
  inputs[0].set(500, INFINITY);
  ExpectMatchesReference(op, inputs);
}

TEST(CorrelationBackward, EmptyInputs) {
  std::mt19937 rng(4);
  ExpectMatchesReference(Backward({}), Inputs({}, DType::kF32, {0, 3, 4, 5}, rng));
  ExpectMatchesReference(Backward({}), Inputs({}, DType::kF32, {2, 0, 4, 5}, rng));
  const Correlation padded{.padding = {1, 1}};
  ExpectMatchesReference(Backward(padded), Inputs(padded, DType::kF32, {2, 3, 0, 5}, rng));
}

TEST(CorrelationBackward, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(Backward({}), {f32({2, 3, 3, 4, 5}), f32({2, 3, 4, 5}), f32({2, 3, 4, 6})},
              {"'input2'", "expected dimension 3 to be W = 5", "got 6"});
  ExpectError(Backward({}), {f32({2, 3, 3, 4, 6}), f32({2, 3, 4, 5}), f32({2, 3, 4, 5})}, {"'grad_output'", "got 6"});
}

}  // namespace
}  // namespace polyop::testing

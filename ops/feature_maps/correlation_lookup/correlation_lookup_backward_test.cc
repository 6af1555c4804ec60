// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/correlation_lookup/correlation_lookup_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

CorrelationLookupBackward Backward(const CorrelationLookup& forward) {
  CorrelationLookupBackward op;
  static_cast<CorrelationLookup&>(op) = forward;
  return op;
}

std::vector<HostTensor> Inputs(const CorrelationLookup& op, DType dtype, const Shape& volume, std::mt19937& rng) {
  const int64_t samples = (2 * op.radius[0] + 1) * (2 * op.radius[1] + 1);
  const auto reach = static_cast<double>(std::max(volume[3], volume[4]) + 3);
  return {HostTensor::Uniform(dtype, {volume[0], samples, volume[1], volume[2]}, rng),
          HostTensor::Uniform(dtype, volume, rng),
          HostTensor::Uniform(DType::kF32, {volume[0], 2, volume[1], volume[2]}, rng, -3, reach)};
}

class CorrelationLookupBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(CorrelationLookupBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const CorrelationLookup forward :
       {CorrelationLookup{}, {.radius = {0, 0}}, {.radius = {0, 4}}, {.radius = {3, 1}}, {.radius = {9, 20}}}) {
    for (const Shape& shape : {Shape{2, 3, 7, 9, 11}, Shape{1, 5, 13, 1, 40}, Shape{1, 1, 1, 3, 2}}) {
      SCOPED_TRACE(Concat(ToString(shape), ", radius ", forward.radius[0], ", ", forward.radius[1]));
      ExpectMatchesReference(Backward(forward), Inputs(forward, GetParam(), shape, rng), ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CorrelationLookupBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The operator is linear in the volume, so <grad, f(v)> = <grad_v, v>.
TEST(CorrelationLookupBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const CorrelationLookupBackward op = Backward({.radius = {2, 3}});
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 9, 12, 8, 10}, rng);
  std::vector<HostTensor> grad, samples;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(static_cast<const CorrelationLookup&>(op), {inputs[1], inputs[2]}, &samples).ok());
  EXPECT_NEAR(InnerProduct(grad[0], inputs[1]), InnerProduct(samples[0], inputs[0]), 1e-2);
}

TEST(CorrelationLookupBackward, NanStaysLocal) {
  std::mt19937 rng(3);
  const CorrelationLookupBackward op = Backward({.radius = {1, 2}});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 4, 5, 6}, rng);
  inputs[0].set(40, NAN);
  inputs[0].set(90, INFINITY);
  inputs[2].set(5, NAN);
  inputs[2].set(20, -INFINITY);
  ExpectMatchesReference(op, inputs);
}

TEST(CorrelationLookupBackward, EmptyInputs) {
  std::mt19937 rng(4);
  for (const Shape& shape : {Shape{0, 3, 4, 5, 6}, Shape{2, 0, 4, 5, 6}, Shape{2, 3, 4, 0, 6}}) {
    ExpectMatchesReference(Backward({}), Inputs({}, DType::kF32, shape, rng));
  }
}

TEST(CorrelationLookupBackward, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(Backward({}), {f32({2, 80, 3, 4}), f32({2, 3, 4, 5, 6}), f32({2, 2, 3, 4})}, {"'grad_output'", "got 80"});
}

}  // namespace
}  // namespace polyop::testing

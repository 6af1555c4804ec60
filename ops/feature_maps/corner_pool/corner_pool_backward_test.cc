// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/corner_pool/corner_pool_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = CornerPool::Mode;

CornerPoolBackward Backward(Mode mode) {
  CornerPoolBackward op;
  op.mode = mode;
  return op;
}

class CornerPoolBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(CornerPoolBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of many gradients
  for (Mode mode : {Mode::kTop, Mode::kBottom, Mode::kLeft, Mode::kRight}) {
    for (const Shape& shape :
         {Shape{2, 3, 9, 13}, Shape{1, 17, 33, 7}, Shape{1, 1, 1, 1}, Shape{3, 1, 20, 100}, Shape{1, 2, 130, 66}}) {
      HostTensor input = HostTensor::Uniform(GetParam(), shape, rng);
      // Equal elements: the last one is the maximum.
      for (int64_t i = 0; i < input.size(); ++i) input.set(i, std::round(input.at(i) * 8) / 8);
      const HostTensor grad = HostTensor::Uniform(GetParam(), shape, rng);
      ExpectMatchesReference(Backward(mode), {grad, input}, tolerance);
      for (int64_t i = 0; i < input.size(); i += 7) input.set(i, i % 2 ? NAN : -INFINITY);
      ExpectMatchesReference(Backward(mode), {grad, input}, tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CornerPoolBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(CornerPoolBackward, GivesTheGradientToTheMaximum) {
  const auto f32 = [](const std::vector<double>& values) { return HostTensor::Of(DType::kF32, {1, 1, 1, 5}, values); };
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(Backward(Mode::kRight), {f32({1, 2, 4, 8, 16}), f32({0, 3, 3, 1, 5})}, &grads).ok());
  EXPECT_EQ(grads[0].ToDoubles(), (std::vector<double>{1, 2, 12, 0, 16}));
  ASSERT_TRUE(testing::Run(Backward(Mode::kLeft), {f32({1, 2, 4, 8, 16}), f32({0, 3, 3, 1, 2})}, &grads).ok());
  EXPECT_EQ(grads[0].ToDoubles(), (std::vector<double>{0, 3, 4, 0, 24}));
}

TEST(CornerPoolBackward, KeepsNanWhereItBelongs) {
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(Backward(Mode::kBottom),
                           {HostTensor::Of(DType::kF32, {1, 1, 3, 2}, {1, 1, NAN, 1, 1, 1}),
                            HostTensor::Of(DType::kF32, {1, 1, 3, 2}, {0, 5, 1, 1, 2, 2})},
                           &grads)
                  .ok());
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 2) << i;
}

TEST(CornerPoolBackward, EmptyAndInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  for (Mode mode : {Mode::kTop, Mode::kRight}) {
    for (const Shape& shape : {Shape{0, 3, 4, 4}, Shape{1, 3, 0, 4}, Shape{1, 3, 4, 0}}) {
      ExpectMatchesReference(Backward(mode), {f32(shape), f32(shape)});
    }
    ExpectError(Backward(mode), {f32({1, 3, 4, 4}), f32({1, 3, 4, 5})}, {"'input'", "W = 4", "got 5"});
  }
}

}  // namespace
}  // namespace polyop::testing

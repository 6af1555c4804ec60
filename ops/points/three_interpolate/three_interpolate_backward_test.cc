// SPDX-License-Identifier: Apache-2.0
#include "ops/points/three_interpolate/three_interpolate_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batches, channels, columns, points;
};

std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, DType index, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {s.batches, s.channels, s.points}, rng),
          HostTensor::Uniform(dtype, {s.batches, s.channels, s.columns}, rng),
          HostTensor::Uniform(index, {s.batches, s.points, 3}, rng, 0, static_cast<double>(s.columns)),
          HostTensor::Uniform(dtype, {s.batches, s.points, 3}, rng)};
}

class ThreeInterpolateBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(ThreeInterpolateBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of many products
  for (const Sizes& s : {Sizes{2, 3, 7, 20}, Sizes{1, 17, 300, 9}, Sizes{3, 1, 5, 5}, Sizes{1, 33, 40, 700}}) {
    for (const DType index : {DType::kI32, DType::kI64}) {
      ExpectMatchesReference(ThreeInterpolateBackward{}, Inputs(s, GetParam(), index, rng), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ThreeInterpolateBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(ThreeInterpolateBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = Inputs({2, 19, 300, 500}, DType::kF32, DType::kI32, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(ThreeInterpolateBackward{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(ThreeInterpolate{}, {inputs.begin() + 1, inputs.end()}, &output).ok());
  EXPECT_NEAR(InnerProduct(output[0], inputs[0]), InnerProduct(grads[0], inputs[1]), 1e-2);
  EXPECT_NEAR(InnerProduct(output[0], inputs[0]), InnerProduct(grads[1], inputs[3]), 1e-2);
}

TEST(ThreeInterpolateBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = Inputs({2, 5, 30, 50}, DType::kF32, DType::kI32, rng);
  ExpectOnlyRequestedGradients(ThreeInterpolateBackward{}, inputs, 2);
}

TEST(ThreeInterpolateBackward, Empty) {
  std::mt19937 rng(4);
  for (const Sizes& s : {Sizes{0, 3, 5, 4}, Sizes{2, 0, 5, 4}, Sizes{2, 3, 5, 0}, Sizes{2, 3, 0, 0}}) {
    ExpectMatchesReference(ThreeInterpolateBackward{}, Inputs(s, DType::kF32, DType::kI64, rng));
  }
}

TEST(ThreeInterpolateBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(5);
  std::vector<HostTensor> inputs = Inputs({1, 2, 6, 2}, DType::kF32, DType::kI32, rng);
  inputs[2] = HostTensor::Of(DType::kI32, {1, 2, 3}, {5, 2, 0, 2, 3, 4});
  inputs[3] = HostTensor::Of(DType::kF32, {1, 2, 3}, {1, 0, 0.5, 1, 1, 1});
  inputs[0].set(2, NAN);  // channel 1, point 0
  ExpectMatchesReference(ThreeInterpolateBackward{}, inputs);
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(ThreeInterpolateBackward{}, inputs, &grads).ok());
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 6 || i == 11) << i;
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(grads[1].at(i)), i < 3) << i;
}

TEST(ThreeInterpolateBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  std::vector<HostTensor> inputs = Inputs({1, 3, 6, 4}, DType::kF32, DType::kI32, rng);
  ExpectError(ThreeInterpolateBackward{},
              {HostTensor::Full(DType::kF32, {1, 4, 4}, 0), inputs[1], inputs[2], inputs[3]}, {"'features'", "C = 4"});
  inputs[2].set(3, -1);
  ExpectError(ThreeInterpolateBackward{}, inputs,
              {"'idx' at flat index 3: expected a column of 'features' in [0, 6), got -1"});
}

}  // namespace
}  // namespace polyop::testing

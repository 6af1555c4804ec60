// SPDX-License-Identifier: Apache-2.0
#include "ops/points/assign_score_withk/assign_score_withk_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batch, queries, neighbours, matrices, points, size;
};

// Some indices are out of range.
std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, DType index, std::mt19937& rng) {
  const Shape features = {s.batch, s.points, s.matrices, s.size};
  const auto points = static_cast<double>(s.points);
  HostTensor scores = HostTensor::Uniform(dtype, {s.batch, s.queries, s.neighbours, s.matrices}, rng);
  for (int64_t i = 0; i < scores.size(); i += 5) scores.set(i, 0);
  return {HostTensor::Uniform(dtype, {s.batch, s.size, s.queries, s.neighbours}, rng), scores,
          HostTensor::Uniform(dtype, features, rng), HostTensor::Uniform(dtype, features, rng),
          HostTensor::Uniform(index, {s.batch, s.queries, s.neighbours}, rng, -0.1 * points, 1.1 * points)};
}

class AssignScoreWithkBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(AssignScoreWithkBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of many products
  for (const Sizes& s :
       {Sizes{2, 9, 4, 3, 12, 5}, Sizes{1, 40, 7, 8, 5, 33}, Sizes{3, 5, 1, 1, 30, 16}, Sizes{1, 3, 9, 16, 7, 1}}) {
    for (const DType index : {DType::kI32, DType::kI64}) {
      ExpectMatchesReference(AssignScoreWithkBackward{}, Inputs(s, GetParam(), index, rng), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AssignScoreWithkBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(AssignScoreWithkBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = Inputs({2, 30, 8, 6, 40, 20}, DType::kF32, DType::kI32, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(AssignScoreWithkBackward{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(AssignScoreWithk{}, {inputs.begin() + 1, inputs.end()}, &output).ok());
  const double expected = InnerProduct(output[0], inputs[0]);
  EXPECT_NEAR(expected, InnerProduct(grads[0], inputs[1]), 1e-2);
  EXPECT_NEAR(expected, InnerProduct(grads[1], inputs[2]) + InnerProduct(grads[2], inputs[3]), 1e-2);
}

TEST(AssignScoreWithkBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = Inputs({2, 9, 4, 3, 12, 5}, DType::kF32, DType::kI32, rng);
  ExpectOnlyRequestedGradients(AssignScoreWithkBackward{}, inputs, 3);
}

TEST(AssignScoreWithkBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = Inputs({1, 2, 3, 1, 5, 1}, DType::kF32, DType::kI32, rng), grads;
  inputs[1] = HostTensor::Full(DType::kF32, {1, 2, 3, 1}, 0.5);
  inputs[4] = HostTensor::Of(DType::kI32, {1, 2, 3}, {1, 2, 9, 0, 3, 4});
  inputs[0].set(2, NAN);  // a neighbour out of range
  inputs[0].set(4, NAN);  // point 3, centre 0
  ExpectMatchesReference(AssignScoreWithkBackward{}, inputs);
  ASSERT_TRUE(testing::Run(AssignScoreWithkBackward{}, inputs, &grads).ok());
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 4) << i;
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(grads[1].at(i)), i == 3) << i;
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(grads[2].at(i)), i == 0) << i;
  inputs[1].set(4, 0);  // a score of 0
  ASSERT_TRUE(testing::Run(AssignScoreWithkBackward{}, inputs, &grads).ok());
  EXPECT_EQ(grads[1].at(3), 0);
}

TEST(AssignScoreWithkBackward, Empty) {
  std::mt19937 rng(5);
  for (const Sizes& s : {Sizes{0, 2, 3, 4, 5, 6}, Sizes{1, 0, 3, 4, 5, 6}, Sizes{1, 2, 0, 4, 5, 6},
                         Sizes{1, 2, 3, 0, 5, 6}, Sizes{1, 2, 3, 4, 0, 6}, Sizes{1, 2, 3, 4, 5, 0}}) {
    ExpectMatchesReference(AssignScoreWithkBackward{}, Inputs(s, DType::kF32, DType::kI32, rng));
  }
}

TEST(AssignScoreWithkBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  std::vector<HostTensor> inputs = Inputs({1, 2, 3, 4, 5, 6}, DType::kF32, DType::kI32, rng);
  inputs[0] = HostTensor::Full(DType::kF32, {1, 7, 2, 3}, 0);
  ExpectError(AssignScoreWithkBackward{}, inputs, {"'point_features'", "O = 7", "got 6"});
}

}  // namespace
}  // namespace polyop::testing

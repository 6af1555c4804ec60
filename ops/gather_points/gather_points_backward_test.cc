#include "ops/gather_points/gather_points_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batches, channels, points, picks;
};

std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, DType index, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {s.batches, s.channels, s.picks}, rng),
          HostTensor::Uniform(dtype, {s.batches, s.channels, s.points}, rng),
          HostTensor::Uniform(index, {s.batches, s.picks}, rng, 0, static_cast<double>(s.points))};
}

class GatherPointsBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(GatherPointsBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of many gradients
  for (const Sizes& s :
       {Sizes{2, 3, 7, 20}, Sizes{1, 17, 300, 9}, Sizes{3, 1, 5, 5}, Sizes{1, 32, 40, 700}, Sizes{1, 5, 5000, 400}}) {
    for (const DType index : {DType::kI32, DType::kI64}) {
      ExpectMatchesReference(GatherPointsBackward{}, Inputs(s, GetParam(), index, rng), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GatherPointsBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(GatherPointsBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = Inputs({2, 19, 300, 500}, DType::kF32, DType::kI32, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(GatherPointsBackward{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(GatherPoints{}, {inputs[1], inputs[2]}, &output).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < output[0].size(); ++i) left += output[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grads[0].size(); ++i) right += grads[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-3);
}

TEST(GatherPointsBackward, Empty) {
  std::mt19937 rng(3);
  for (const Sizes& s : {Sizes{0, 3, 5, 4}, Sizes{2, 0, 5, 4}, Sizes{2, 3, 5, 0}, Sizes{2, 3, 0, 0}}) {
    ExpectMatchesReference(GatherPointsBackward{}, Inputs(s, DType::kF32, DType::kI64, rng));
  }
}

TEST(GatherPointsBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = Inputs({1, 3, 6, 4}, DType::kF32, DType::kI32, rng);
  inputs[2] = HostTensor::Of(DType::kI32, {1, 4}, {5, 2, 0, 2});
  inputs[0].set(4 + 1, NAN);  // channel 1, a copy of point 2
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(GatherPointsBackward{}, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 6 + 2) << i;
}

TEST(GatherPointsBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  const std::vector<HostTensor> good = Inputs({1, 3, 6, 4}, DType::kF32, DType::kI32, rng);
  HostTensor idx = good[2];
  idx.set(3, 6);
  ExpectError(GatherPointsBackward{}, {good[0], good[1], idx},
              {"'idx' at flat index 3: expected a column of 'features' in [0, 6), got 6"});
  ExpectError(GatherPointsBackward{}, {good[0], HostTensor::Full(DType::kF32, {1, 4, 6}, 0), idx},
              {"'features'", "C = 3", "got 4"});
}

}  // namespace
}  // namespace polyop::testing

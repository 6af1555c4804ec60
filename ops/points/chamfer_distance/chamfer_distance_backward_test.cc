// SPDX-License-Identifier: Apache-2.0
#include "ops/points/chamfer_distance/chamfer_distance_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batch, count1, count2, coordinates;
};

// Returns gradients, points and their neighbours.
std::vector<HostTensor> WithNeighbours(const HostTensor& xyz1, const HostTensor& xyz2, std::mt19937& rng) {
  std::vector<HostTensor> found;
  EXPECT_TRUE(testing::Run(ChamferDistance{}, {xyz1, xyz2}, &found).ok());
  return {HostTensor::Uniform(xyz1.dtype(), found[0].shape(), rng),
          HostTensor::Uniform(xyz1.dtype(), found[1].shape(), rng),
          xyz1,
          xyz2,
          found[2],
          found[3]};
}
std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, std::mt19937& rng) {
  return WithNeighbours(HostTensor::Uniform(dtype, {s.batch, s.count1, s.coordinates}, rng),
                        HostTensor::Uniform(dtype, {s.batch, s.count2, s.coordinates}, rng), rng);
}

class ChamferDistanceBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(ChamferDistanceBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Sizes& s : {Sizes{2, 7, 20, 3}, Sizes{1, 1, 300, 2}, Sizes{3, 90, 5, 3}, Sizes{90, 11, 10, 2}}) {
    ExpectMatchesReference(ChamferDistanceBackward{}, Inputs(s, GetParam(), rng), ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ChamferDistanceBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(ChamferDistanceBackward, ScratchForOneThread) {
  std::mt19937 rng(9);
  ExpectScratchOfOneThread(ChamferDistanceBackward{},
                           [&](int64_t batch) { return Inputs({batch, 200, 300, 3}, DType::kF32, rng); });
}

TEST(ChamferDistanceBackward, MatchesDifferences) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = Inputs({1, 30, 40, 3}, DType::kF32, rng);
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(ChamferDistanceBackward{}, inputs, &grads).ok());
  const auto loss = [&](const HostTensor& xyz1, const HostTensor& xyz2) {
    std::vector<HostTensor> found;
    EXPECT_TRUE(testing::Run(ChamferDistance{}, {xyz1, xyz2}, &found).ok());
    double sum = 0;
    for (int64_t i = 0; i < 30; ++i) sum += found[0].at(i) * inputs[0].at(i);
    for (int64_t i = 0; i < 40; ++i) sum += found[1].at(i) * inputs[1].at(i);
    return sum;
  };
  constexpr double kStep = 1e-3;
  for (int64_t i = 0; i < 90; i += 7) {
    for (size_t cloud = 0; cloud < 2; ++cloud) {
      std::vector<HostTensor> up = inputs, down = inputs;
      up[2 + cloud].set(i, inputs[2 + cloud].at(i) + kStep);
      down[2 + cloud].set(i, inputs[2 + cloud].at(i) - kStep);
      EXPECT_NEAR((loss(up[2], up[3]) - loss(down[2], down[3])) / (2 * kStep), grads[cloud].at(i), 5e-3);
    }
  }
}

TEST(ChamferDistanceBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = Inputs({2, 30, 50, 3}, DType::kF32, rng);
  ExpectOnlyRequestedGradients(ChamferDistanceBackward{}, inputs, 2);
}

TEST(ChamferDistanceBackward, SkipsPointsWithoutNeighbours) {
  std::mt19937 rng(4);
  HostTensor xyz1 = HostTensor::Uniform(DType::kF32, {1, 6, 2}, rng);
  HostTensor xyz2 = HostTensor::Uniform(DType::kF32, {1, 5, 2}, rng);
  xyz1.set(3, NAN);
  xyz2.set(0, INFINITY);
  std::vector<HostTensor> inputs = WithNeighbours(xyz1, xyz2, rng);
  ExpectMatchesReference(ChamferDistanceBackward{}, inputs);
  inputs[0].set(1, NAN);  // the gradient of a distance that is infinite
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(ChamferDistanceBackward{}, inputs, &grads).ok());
  for (double g : grads[0].ToDoubles()) EXPECT_FALSE(std::isnan(g));
  EXPECT_EQ(grads[0].at(2), 0);
  EXPECT_EQ(grads[1].at(0), 0);
  inputs[0].set(2, NAN);
  ExpectMatchesReference(ChamferDistanceBackward{}, inputs);
  ASSERT_TRUE(testing::Run(ChamferDistanceBackward{}, inputs, &grads).ok());
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(grads[0].at(2 * i)), i == 2) << i;
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(grads[1].at(2 * i)), i == inputs[4].at(2)) << i;
}

TEST(ChamferDistanceBackward, Empty) {
  std::mt19937 rng(5);
  for (const Sizes& s : {Sizes{0, 3, 5, 3}, Sizes{2, 0, 0, 3}}) {
    ExpectMatchesReference(ChamferDistanceBackward{}, Inputs(s, DType::kF32, rng));
  }
}

TEST(ChamferDistanceBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  std::vector<HostTensor> inputs = Inputs({1, 6, 4, 3}, DType::kF32, rng);
  inputs[5].set(3, 6);
  ExpectError(ChamferDistanceBackward{}, inputs,
              {"'idx2' at flat index 3: expected a point of 'xyz1' in [0, 6), got 6"});
  ExpectError(ChamferDistanceBackward{},
              {inputs[0], inputs[1], HostTensor::Full(DType::kF32, {1, 6, 4}, 0),
               HostTensor::Full(DType::kF32, {1, 4, 4}, 0), inputs[4], inputs[5]},
              {"'xyz1': expected points of 2 or 3 coordinates, got 4"});
}

}  // namespace
}  // namespace polyop::testing

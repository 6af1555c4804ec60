// SPDX-License-Identifier: Apache-2.0
#include "ops/points/three_interpolate/three_interpolate.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

TEST(ThreeInterpolate, IsAWeightedSum) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(polyop::testing::Run(ThreeInterpolate{},
                                   {HostTensor::Of(DType::kF32, {1, 2, 4}, {1, 2, 3, 4, 10, 20, 30, 40}),
                                    HostTensor::Of(DType::kI32, {1, 2, 3}, {0, 1, 3, 2, 2, 2}),
                                    HostTensor::Of(DType::kF32, {1, 2, 3}, {1, 0.5, 0.25, 1, 1, 0})},
                                   &out)
                  .ok());
  EXPECT_EQ(ToString(out[0].shape()), "[1, 2, 2]");
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{3, 6, 30, 60}));
}

TEST(ThreeInterpolate, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (int round = 0; round < 60; ++round) {
    const int64_t batches = rng() % 4, channels = rng() % 7, sources = 1 + rng() % 40, targets = rng() % 70;
    const DType dtype = kTypes[rng() % 3];
    SCOPED_TRACE(Concat("round ", round));
    ExpectMatchesReference(
        ThreeInterpolate{},
        {HostTensor::Uniform(dtype, {batches, channels, sources}, rng),
         HostTensor::Uniform(rng() % 2 ? DType::kI32 : DType::kI64, {batches, targets, 3}, rng, 0, sources),
         HostTensor::Uniform(dtype, {batches, targets, 3}, rng, 0, 1)},
        ToleranceFor(dtype));
  }
}

TEST(ThreeInterpolate, ManyPointsInParallel) {
  std::mt19937 rng(2);
  ExpectMatchesReference(ThreeInterpolate{}, {HostTensor::Uniform(DType::kF32, {2, 19, 1000}, rng),
                                              HostTensor::Uniform(DType::kI32, {2, 9001, 3}, rng, 0, 1000),
                                              HostTensor::Uniform(DType::kF32, {2, 9001, 3}, rng, 0, 1)});
}

TEST(ThreeInterpolate, PropagatesNanAndInfinity) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(polyop::testing::Run(ThreeInterpolate{},
                                   {HostTensor::Of(DType::kF32, {1, 1, 3}, {NAN, INFINITY, 1}),
                                    HostTensor::Of(DType::kI32, {1, 3, 3}, {2, 2, 2, 2, 1, 2, 0, 2, 2}),
                                    HostTensor::Of(DType::kF32, {1, 3, 3}, {1, 1, 1, 1, 1, 1, 0, 1, 1})},
                                   &out)
                  .ok());
  EXPECT_EQ(out[0].at(0), 3);
  EXPECT_EQ(out[0].at(1), INFINITY);
  EXPECT_TRUE(std::isnan(out[0].at(2)));
}

TEST(ThreeInterpolate, RejectsInvalidInputs) {
  const HostTensor features = HostTensor::Full(DType::kF32, {1, 2, 4}, 1);
  const HostTensor weight = HostTensor::Full(DType::kF32, {1, 1, 3}, 1);
  const auto idx = [](const std::vector<double>& v) { return HostTensor::Of(DType::kI64, {1, 1, 3}, v); };
  ExpectError(ThreeInterpolate{}, {features, idx({0, 4, 1}), weight},
              {"'idx' at flat index 1: expected a column of 'features' in [0, 4), got 4"});
  ExpectError(ThreeInterpolate{}, {features, idx({0, 1, -1}), weight},
              {"'idx' at flat index 2: expected a column of 'features' in [0, 4), got -1"});
  ExpectError(ThreeInterpolate{}, {HostTensor::Full(DType::kF32, {1, 2, 0}, 1), idx({0, 0, 0}), weight},
              {"expected a column of 'features' in [0, 0)"});
  ExpectError(ThreeInterpolate{}, {features, idx({0, 1, 2}), HostTensor::Full(DType::kF32, {1, 2, 3}, 1)},
              {"'weight'", "to be N = 1", "(shape [1, 2, 3] for"});
  ExpectError(ThreeInterpolate{}, {features, HostTensor::Full(DType::kI32, {1, 1, 2}, 0), weight},
              {"'idx'", "to be 3, got", "(shape [1, 1, 2] for"});
  ExpectError(ThreeInterpolate{}, {features, idx({0, 1, 2}), weight.Cast(DType::kF16)}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing

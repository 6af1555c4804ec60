// SPDX-License-Identifier: Apache-2.0
#include "ops/points/gather_points/gather_points.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

TEST(GatherPoints, GathersColumnsOfEachBatchElement) {
  std::vector<HostTensor> out;
  const HostTensor features = HostTensor::Of(DType::kF32, {2, 2, 3}, {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32});
  const HostTensor idx = HostTensor::Of(DType::kI32, {2, 2}, {2, 0, 1, 1});
  ASSERT_TRUE(polyop::testing::Run(GatherPoints{}, {features, idx}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[2, 2, 2]");
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{2, 0, 12, 10, 21, 21, 31, 31}));
}

TEST(GatherPoints, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (int round = 0; round < 60; ++round) {
    const int64_t batches = rng() % 4, channels = rng() % 11, points = 1 + rng() % 40, chosen = rng() % 90;
    SCOPED_TRACE(Concat("round ", round));
    ExpectMatchesReference(
        GatherPoints{},
        {HostTensor::Uniform(kTypes[rng() % 3], {batches, channels, points}, rng),
         HostTensor::Uniform(rng() % 2 ? DType::kI32 : DType::kI64, {batches, chosen}, rng, 0, points)},
        {0, 0});
  }
}

// More indices than one task processes.
TEST(GatherPoints, ManyPointsInParallel) {
  std::mt19937 rng(2);
  for (int64_t channels : {1, 6}) {
    ExpectMatchesReference(GatherPoints{},
                           {HostTensor::Uniform(DType::kF32, {2, channels, 5000}, rng),
                            HostTensor::Uniform(DType::kI32, {2, 33000}, rng, 0, 5000)},
                           {0, 0});
  }
}

TEST(GatherPoints, NanAndInfinityAreCopied) {
  ExpectMatchesReference(GatherPoints{},
                         {HostTensor::Of(DType::kF16, {1, 1, 3}, {NAN, INFINITY, -0.0}),
                          HostTensor::Of(DType::kI64, {1, 4}, {0, 1, 2, 0})},
                         {0, 0});
}

TEST(GatherPoints, RejectsInvalidInputs) {
  const HostTensor features = HostTensor::Full(DType::kF32, {2, 3, 5}, 1);
  const auto idx = [](const Shape& shape, const std::vector<double>& v) {
    return HostTensor::Of(DType::kI32, shape, v);
  };
  ExpectError(GatherPoints{}, {features, idx({2, 2}, {0, 4, 5, 1})},
              {"'idx' at flat index 2: expected a column of 'features' in [0, 5), got 5"});
  ExpectError(GatherPoints{}, {features, idx({2, 1}, {-1, 0})},
              {"'idx' at flat index 0: expected a column of 'features' in [0, 5), got -1"});
  ExpectError(GatherPoints{}, {HostTensor::Full(DType::kF32, {1, 3, 0}, 1), idx({1, 1}, {0})},
              {"expected a column of 'features' in [0, 0)"});
  ExpectError(GatherPoints{}, {features, idx({1, 1}, {0})}, {"'idx'", "to be B = 2", "(shape [1, 1] for"});
  ExpectError(GatherPoints{}, {features, idx({2}, {0, 0})}, {"'idx': expected rank 2, got 1"});
  ExpectError(GatherPoints{}, {features, HostTensor::Full(DType::kF32, {2, 1}, 0)}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing

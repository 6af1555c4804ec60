// SPDX-License-Identifier: Apache-2.0
#include "ops/points/assign_score_withk/assign_score_withk.h"

#include <cmath>
#include <tuple>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class AssignScoreWithkTest : public ::testing::TestWithParam<std::tuple<DType, DType>> {};

TEST_P(AssignScoreWithkTest, MatchesReference) {
  const auto [type, index_type] = GetParam();
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(30); ++round) {
    const int64_t batches = 1 + rng() % 3, queries = rng() % 40, neighbours = rng() % 9, matrices = rng() % 9;
    const int64_t points = 1 + rng() % 30, size = round % 3 == 0 ? 64 : rng() % 40;
    SCOPED_TRACE(Concat("round ", round, ": ", queries, " x ", neighbours, ", ", matrices, " x ", size));
    const double margin = round % 4 == 0 ? 2 : 0;
    ExpectMatchesReference(AssignScoreWithk{},
                           {HostTensor::Uniform(type, {batches, queries, neighbours, matrices}, rng),
                            HostTensor::Uniform(type, {batches, points, matrices, size}, rng),
                            HostTensor::Uniform(type, {batches, points, matrices, size}, rng),
                            HostTensor::Uniform(index_type, {batches, queries, neighbours}, rng, -margin,
                                                static_cast<double>(points) + margin)},
                           ToleranceFor(type));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AssignScoreWithkTest,
                         ::testing::Combine(::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                                            ::testing::Values(DType::kI32, DType::kI64)),
                         [](const auto& test) {
                           return Concat(NameOf(std::get<0>(test.param)), "_", NameOf(std::get<1>(test.param)));
                         });

TEST(AssignScoreWithk, KnownSums) {
  const HostTensor scores = HostTensor::Of(DType::kF32, {1, 2, 3, 2}, {1, 2, 3, 4, NAN, 5, 1, 1, 1, 1, 1, 1});
  const HostTensor features = HostTensor::Of(DType::kF32, {1, 2, 2, 1}, {10, 20, 30, 50});
  const HostTensor centers = HostTensor::Of(DType::kF32, {1, 2, 2, 1}, {1, 2, 3, 5});
  // The third neighbour of the first query and the centre of the second query are out of range.
  const HostTensor index = HostTensor::Of(DType::kI64, {1, 2, 3}, {1, 0, -1, 2, 0, 1});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(AssignScoreWithk{}, {scores, features, centers, index}, &out).ok());
  EXPECT_EQ(out[0].shape(), (Shape{1, 1, 2, 3}));
  const double first = 1 * (30 - 3) + 2 * (50 - 5), second = 3 * (10 - 3) + 4 * (20 - 5);
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{first, second, 0, 0, 0, 0}));
}

TEST(AssignScoreWithk, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  const HostTensor index = HostTensor::Full(DType::kI32, {1, 2, 3}, 0);
  ExpectError(AssignScoreWithk{}, {f32({1, 2, 3, 4}), f32({1, 5, 3, 6}), f32({1, 5, 4, 6}), index},
              {"'point_features'", "expected dimension 2 to be M = 4", "got 3"});
  ExpectError(AssignScoreWithk{}, {f32({1, 2, 3, 4}), f32({1, 5, 4, 6}), f32({1, 5, 4, 7}), index},
              {"'center_features'", "expected dimension 3 to be O = 6", "got 7"});
  ExpectError(AssignScoreWithk{}, {f32({1, 2, 9, 4}), f32({1, 5, 4, 6}), f32({1, 5, 4, 6}), index},
              {"'knn_idx'", "expected dimension 2 to be K = 9", "got 3"});
}

}  // namespace
}  // namespace polyop::testing

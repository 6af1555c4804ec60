// SPDX-License-Identifier: Apache-2.0
#include "ops/points/gather_points/gather_points_backward.h"

#include "ops/points/gather_columns_backward_test.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class GatherPointsBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(GatherPointsBackwardTest, MatchesReference) {
  ExpectColumnsMatchReference<GatherPointsBackward>(
      {{2, 3, 7, {20}}, {1, 17, 300, {9}}, {3, 1, 5, {5}}, {1, 32, 40, {700}}, {1, 5, 5000, {400}}}, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Types, GatherPointsBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(GatherPointsBackward, IsTheAdjointOfTheForwardPass) {
  ExpectAdjointOfGather<GatherPointsBackward>({2, 19, 300, {500}});
}

TEST(GatherPointsBackward, Empty) { ExpectEmptyColumns<GatherPointsBackward>({2, 3, 5, {4}}); }

TEST(GatherPointsBackward, KeepsNanWhereItBelongs) { ExpectNanStaysInItsColumn<GatherPointsBackward>({1, 3, 6, {4}}); }

TEST(GatherPointsBackward, RejectsInvalidInputs) { ExpectColumnsRefuseBadInput<GatherPointsBackward>({1, 3, 6, {4}}); }

}  // namespace
}  // namespace polyop::testing

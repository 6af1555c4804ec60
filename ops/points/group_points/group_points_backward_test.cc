// SPDX-License-Identifier: Apache-2.0
#include "ops/points/group_points/group_points_backward.h"

#include "ops/points/gather_columns_backward_test.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class GroupPointsBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(GroupPointsBackwardTest, MatchesReference) {
  ExpectColumnsMatchReference<GroupPointsBackward>(
      {{2, 3, 7, {5, 4}}, {1, 17, 300, {9, 3}}, {3, 1, 5, {5, 1}}, {1, 32, 40, {90, 8}}, {1, 5, 5000, {40, 10}}},
      GetParam());
}

INSTANTIATE_TEST_SUITE_P(Types, GroupPointsBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(GroupPointsBackward, IsTheAdjointOfTheForwardPass) {
  ExpectAdjointOfGather<GroupPointsBackward>({2, 19, 300, {500, 2}});
}

TEST(GroupPointsBackward, Empty) { ExpectEmptyColumns<GroupPointsBackward>({2, 3, 5, {2, 2}}); }

TEST(GroupPointsBackward, KeepsNanWhereItBelongs) { ExpectNanStaysInItsColumn<GroupPointsBackward>({1, 3, 6, {2, 2}}); }

TEST(GroupPointsBackward, RejectsInvalidInputs) { ExpectColumnsRefuseBadInput<GroupPointsBackward>({1, 3, 6, {2, 2}}); }

}  // namespace
}  // namespace polyop::testing

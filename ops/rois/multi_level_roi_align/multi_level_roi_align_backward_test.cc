// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/multi_level_roi_align/multi_level_roi_align_backward.h"

#include "ops/rois/roi_pyramid_test.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class MultiLevelRoiAlignBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(MultiLevelRoiAlignBackwardTest, MatchesReference) {
  ExpectPyramidGradientMatchesReference<MultiLevelRoiAlignBackward>(
      UprightPyramidRois, GetParam(), [](int i, MultiLevelRoiAlignBackward& op) {
        op.pool_mode = i % 2 ? MultiLevelRoiAlign::PoolMode::kMax : MultiLevelRoiAlign::PoolMode::kAvg;
      });
}

INSTANTIATE_TEST_SUITE_P(Types, MultiLevelRoiAlignBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MultiLevelRoiAlignBackward, IsTheAdjointOfTheForwardPass) {
  ExpectPyramidGradientIsTheAdjoint<MultiLevelRoiAlignBackward, MultiLevelRoiAlign>(UprightPyramidRois);
}

TEST(MultiLevelRoiAlignBackward, RejectsInvalidInputs) {
  ExpectPyramidGradientRefusesBadInput<MultiLevelRoiAlignBackward>(UprightPyramidRois);
}

}  // namespace
}  // namespace polyop::testing

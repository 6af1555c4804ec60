// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/multi_level_roi_align/multi_level_roi_align.h"

#include "ops/rois/roi_pyramid_test.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class MultiLevelRoiAlignTest : public ::testing::TestWithParam<DType> {};

TEST_P(MultiLevelRoiAlignTest, MatchesReference) {
  ExpectPyramidMatchesReference<MultiLevelRoiAlign>(UprightPyramidRois, GetParam(), [](int i, MultiLevelRoiAlign& op) {
    op.pool_mode = i % 2 ? MultiLevelRoiAlign::PoolMode::kMax : MultiLevelRoiAlign::PoolMode::kAvg;
  });
}

INSTANTIATE_TEST_SUITE_P(Types, MultiLevelRoiAlignTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MultiLevelRoiAlign, NoBoxesAndNanBoxes) {
  ExpectNoBoxesAndNanBoxesOfPyramid<MultiLevelRoiAlign>(UprightPyramidRois);
}

TEST(MultiLevelRoiAlign, RejectsInvalidInputs) { ExpectPyramidRefusesBadInput<MultiLevelRoiAlign>(UprightPyramidRois); }

}  // namespace
}  // namespace polyop::testing

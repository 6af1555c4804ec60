// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/multi_level_rotated_roi_align/multi_level_rotated_roi_align.h"

#include "ops/rois/roi_pyramid_test.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class MultiLevelRotatedRoiAlignTest : public ::testing::TestWithParam<DType> {};

TEST_P(MultiLevelRotatedRoiAlignTest, MatchesReference) {
  ExpectPyramidMatchesReference<MultiLevelRotatedRoiAlign>(
      RotatedPyramidRois, GetParam(), [](int i, MultiLevelRotatedRoiAlign& op) { op.clockwise = i % 2; });
}

INSTANTIATE_TEST_SUITE_P(Types, MultiLevelRotatedRoiAlignTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MultiLevelRotatedRoiAlign, NoBoxesAndNanBoxes) {
  ExpectNoBoxesAndNanBoxesOfPyramid<MultiLevelRotatedRoiAlign>(RotatedPyramidRois);
}

TEST(MultiLevelRotatedRoiAlign, RejectsInvalidInputs) {
  ExpectPyramidRefusesBadInput<MultiLevelRotatedRoiAlign>(RotatedPyramidRois);
}

}  // namespace
}  // namespace polyop::testing

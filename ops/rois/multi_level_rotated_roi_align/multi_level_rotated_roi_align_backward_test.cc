// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/multi_level_rotated_roi_align/multi_level_rotated_roi_align_backward.h"

#include "ops/rois/roi_pyramid_test.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class MultiLevelRotatedRoiAlignBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(MultiLevelRotatedRoiAlignBackwardTest, MatchesReference) {
  ExpectPyramidGradientMatchesReference<MultiLevelRotatedRoiAlignBackward>(
      RotatedPyramidRois, GetParam(), [](int i, MultiLevelRotatedRoiAlignBackward& op) { op.clockwise = i % 2 == 0; });
}

INSTANTIATE_TEST_SUITE_P(Types, MultiLevelRotatedRoiAlignBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MultiLevelRotatedRoiAlignBackward, IsTheAdjointOfTheForwardPass) {
  ExpectPyramidGradientIsTheAdjoint<MultiLevelRotatedRoiAlignBackward, MultiLevelRotatedRoiAlign>(RotatedPyramidRois);
}

TEST(MultiLevelRotatedRoiAlignBackward, RejectsInvalidInputs) {
  ExpectPyramidGradientRefusesBadInput<MultiLevelRotatedRoiAlignBackward>(RotatedPyramidRois);
}

}  // namespace
}  // namespace polyop::testing

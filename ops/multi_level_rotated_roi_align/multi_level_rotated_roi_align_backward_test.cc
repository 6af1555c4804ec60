#include "ops/multi_level_rotated_roi_align/multi_level_rotated_roi_align_backward.h"

#include "families/rois/roi_pyramid_test.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Boxes of 2 to 120 pixels on an image of 64 pixels, so that every level is used and some boxes extend beyond the
// image.
HostTensor Rois(DType dtype, int64_t count, std::mt19937& rng) {
  std::uniform_real_distribution<double> at(-10, 60), size(2, 120), angle(-3, 3);
  HostTensor rois(dtype, {count, 6});
  for (int64_t r = 0; r < count; ++r) {
    const double values[6] = {static_cast<double>(r % 2), at(rng), at(rng), size(rng), size(rng) * 0.7, angle(rng)};
    for (int k = 0; k < 6; ++k) rois.set(6 * r + k, values[k]);
  }
  return rois;
}

class MultiLevelRotatedRoiAlignBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(MultiLevelRotatedRoiAlignBackwardTest, MatchesReference) {
  ExpectPyramidGradientMatchesReference<MultiLevelRotatedRoiAlignBackward>(
      Rois, GetParam(), [](int i, MultiLevelRotatedRoiAlignBackward& op) { op.clockwise = i % 2 == 0; });
}

INSTANTIATE_TEST_SUITE_P(Types, MultiLevelRotatedRoiAlignBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MultiLevelRotatedRoiAlignBackward, IsTheAdjointOfTheForwardPass) {
  ExpectPyramidGradientIsTheAdjoint<MultiLevelRotatedRoiAlignBackward, MultiLevelRotatedRoiAlign>(Rois);
}

TEST(MultiLevelRotatedRoiAlignBackward, RejectsInvalidInputs) {
  ExpectPyramidGradientRefusesBadInput<MultiLevelRotatedRoiAlignBackward>(Rois);
}

}  // namespace
}  // namespace polyop::testing

#include "ops/multi_level_roi_align/multi_level_roi_align_backward.h"

#include "families/rois/roi_pyramid_test.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Boxes of 2 to 120 pixels on an image of 64 pixels, so that every level is used and some boxes extend beyond the
// image.
HostTensor Rois(DType dtype, int64_t count, std::mt19937& rng) {
  std::uniform_real_distribution<double> at(-10, 60), size(2, 120);
  HostTensor rois(dtype, {count, 5});
  for (int64_t r = 0; r < count; ++r) {
    const double x = at(rng), y = at(rng);
    const double values[5] = {static_cast<double>(r % 2), x, y, x + size(rng), y + size(rng) * 0.7};
    for (int k = 0; k < 5; ++k) rois.set(5 * r + k, values[k]);
  }
  return rois;
}

class MultiLevelRoiAlignBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(MultiLevelRoiAlignBackwardTest, MatchesReference) {
  ExpectPyramidGradientMatchesReference<MultiLevelRoiAlignBackward>(
      Rois, GetParam(), [](int i, MultiLevelRoiAlignBackward& op) {
        op.pool_mode = i % 2 ? MultiLevelRoiAlign::PoolMode::kMax : MultiLevelRoiAlign::PoolMode::kAvg;
      });
}

INSTANTIATE_TEST_SUITE_P(Types, MultiLevelRoiAlignBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MultiLevelRoiAlignBackward, IsTheAdjointOfTheForwardPass) {
  ExpectPyramidGradientIsTheAdjoint<MultiLevelRoiAlignBackward, MultiLevelRoiAlign>(Rois);
}

TEST(MultiLevelRoiAlignBackward, RejectsInvalidInputs) {
  ExpectPyramidGradientRefusesBadInput<MultiLevelRoiAlignBackward>(Rois);
}

}  // namespace
}  // namespace polyop::testing

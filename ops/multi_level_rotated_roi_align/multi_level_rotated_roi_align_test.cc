#include "ops/multi_level_rotated_roi_align/multi_level_rotated_roi_align.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

MultiLevelRotatedRoiAlign Make() {
  MultiLevelRotatedRoiAlign op;
  op.output_height = 3;
  op.output_width = 2;
  op.featmap_strides = {{4, 8, 16}, 3};
  op.finest_scale = 12;
  return op;
}

// Boxes of 2 to 120 pixels on a picture of 64, so that every level is used and some leave the picture.
HostTensor Rois(DType dtype, int64_t count, std::mt19937& rng) {
  std::uniform_real_distribution<double> at(-10, 60), size(2, 120), angle(-3, 3);
  HostTensor rois(dtype, {count, 6});
  for (int64_t r = 0; r < count; ++r) {
    const double values[6] = {static_cast<double>(r % 2), at(rng), at(rng), size(rng), size(rng) * 0.7, angle(rng)};
    for (int k = 0; k < 6; ++k) rois.set(6 * r + k, values[k]);
  }
  return rois;
}

std::vector<HostTensor> Inputs(DType dtype, int64_t count, int64_t channels, std::mt19937& rng) {
  return {Rois(dtype, count, rng), HostTensor::Uniform(dtype, {2, channels, 16, 15}, rng),
          HostTensor::Uniform(dtype, {2, channels, 8, 9}, rng), HostTensor::Uniform(dtype, {2, channels, 4, 5}, rng)};
}

class MultiLevelRotatedRoiAlignTest : public ::testing::TestWithParam<DType> {};

TEST_P(MultiLevelRotatedRoiAlignTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int i = 0; i < 24; ++i) {
    MultiLevelRotatedRoiAlign op = Make();
    op.sampling_ratio = i % 3;
    op.aligned = i % 4 < 2;
    op.roi_scale_factor = i % 5 == 0 ? 1.5f : 0.0f;
    op.clockwise = i % 2;
    ExpectMatchesReference(op, Inputs(GetParam(), 12, i % 2 ? 17 : 3, rng), ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MultiLevelRotatedRoiAlignTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MultiLevelRotatedRoiAlign, NoBoxesAndNanBoxes) {
  std::mt19937 rng(2);
  ExpectMatchesReference(Make(), Inputs(DType::kF32, 0, 3, rng));
  std::vector<HostTensor> inputs = Inputs(DType::kF32, 3, 3, rng);
  inputs[0].set(6 + 1, NAN);
  inputs[0].set(2 * 6 + 3, INFINITY);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Make(), inputs, &out).ok());
  for (int64_t i = 18; i < out[0].size(); ++i) EXPECT_EQ(out[0].at(i), 0);
}

TEST(MultiLevelRotatedRoiAlign, RefusesBadInput) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = Inputs(DType::kF32, 2, 3, rng);
  MultiLevelRotatedRoiAlign op = Make();
  op.featmap_strides.count = 2;
  ExpectError(op, inputs, {"'featmap_strides' has 2 values, wanted one for each of the 3 'feats'"});
  inputs[0].set(0, 2);
  ExpectError(Make(), inputs, {"'rois'[0, 0] is 2", "[0, 2)"});
  inputs[2] = HostTensor::Full(DType::kF32, {2, 4, 8, 8}, 0);
  ExpectError(Make(), inputs, {"'feats'", "dimension 1 is 4, wanted C = 3"});
  ExpectAttributeError(*FindOp("multi_level_rotated_roi_align"), {}, {"'featmap_strides' is missing"});
  ExpectAttributeError(*FindOp("multi_level_rotated_roi_align"), {{"featmap_strides", AttrValue::Floats({4, 0})}},
                       {"'featmap_strides' is 0"});
}

}  // namespace
}  // namespace polyop::testing

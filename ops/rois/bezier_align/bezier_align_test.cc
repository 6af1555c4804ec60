// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/bezier_align/bezier_align.h"

#include <cmath>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class BezierAlignTest : public ::testing::TestWithParam<DType> {};

TEST_P(BezierAlignTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t ratio : {-1, 0, 1, 2, 5}) {
    for (bool aligned : {true, false}) {
      for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 49, 11, 7}, Shape{3, 16, 1, 1}}) {
        SCOPED_TRACE(Concat(ToString(shape), ", ratio ", ratio));
        ExpectMatchesReference(
            BezierAlign{2, 5, 0.75f, ratio, aligned},
            {HostTensor::Uniform(GetParam(), shape, rng), RandomBezierRois(GetParam(), 9, shape[0], rng)},
            ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BezierAlignTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// On an image that grows by 1 per column and by 10 per row, a bin's average is the value at its centre.
TEST(BezierAlign, BinsFollowTheCurves) {
  HostTensor ramp(DType::kF32, {1, 1, 20, 20});
  for (int64_t i = 0; i < ramp.size(); ++i) ramp.set(i, static_cast<double>(i % 20 + i / 20 * 10));
  // The upper curve rises from y 4 to 7 in its middle, 4 + 3 * 4 * u * (1 - u); the lower one is straight at y 12.
  const HostTensor roi = HostTensor::Of(
      DType::kF32, {1, 17}, {0, 4.5, 4.5, 6.5, 8.5, 8.5, 8.5, 10.5, 4.5, 10.5, 12.5, 8.5, 12.5, 6.5, 12.5, 4.5, 12.5});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(BezierAlign{2, 2, 1, 2}, {ramp, roi}, &out).ok());
  const double expected[4] = {4 + 40, 7 + 70, 4 + 80, 7 + 95};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(out[0].at(i), expected[i], 1e-4) << i;
}

// If both curves have the same x, every row of bins has it too, bit by bit: samples on the image's border stay inside.
TEST(BezierAlign, RowsBetweenVerticalEdgesAreEqual) {
  const HostTensor ones = HostTensor::Full(DType::kF32, {1, 1, 7, 2}, 1);
  // From x 4 down to 0, and y 0 to 5: the samples of each bin lie at x 2, 3, 4 and 5.
  const HostTensor roi = HostTensor::Of(DType::kF32, {1, 17}, {0, 4, 0, 3, 0, 1, 0, 0, 0, 0, 5, 1, 5, 3, 5, 4, 5});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(BezierAlign{5, 1, 1, 4, true}, {ones, roi}, &out).ok());
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(out[0].at(i), 0.25) << i;
}

// A curve's tiny extent survives the shift by half a pixel: its bins have a sample.
TEST(BezierAlign, TinyExtentsHaveSamples) {
  const HostTensor ones = HostTensor::Full(DType::kF32, {1, 1, 4, 4}, 1);
  HostTensor roi = HostTensor::Full(DType::kF32, {1, 17}, 0);
  roi.set(7, 1e-30);
  roi.set(8, 1e-30);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(BezierAlign{1, 1, 1, 0, true}, {ones, roi}, &out).ok());
  EXPECT_EQ(out[0].at(0), 1);
}

TEST(BezierAlign, DegenerateNanInfiniteAndHugeCurves) {
  std::mt19937 rng(3);
  HostTensor rois = RandomBezierRois(DType::kF32, 6, 1, rng);
  rois.set(17 * 0 + 6, NAN);
  rois.set(17 * 1 + 16, INFINITY);
  rois.set(17 * 2 + 1, -1e6);
  rois.set(17 * 2 + 9, 1e6);
  rois.set(17 * 3 + 3, 3e38);
  for (int64_t k = 1; k < 17; ++k) rois.set(17 * 4 + k, 3);  // no extent
  const HostTensor input = HostTensor::Uniform(DType::kF32, {1, 3, 8, 8}, rng);
  for (int64_t ratio : {0, 2}) {
    for (bool aligned : {true, false}) ExpectMatchesReference(BezierAlign{2, 3, 1, ratio, aligned}, {input, rois});
  }
}

TEST(BezierAlign, EmptyInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(BezierAlign{}, {f32({1, 3, 4, 4}), f32({0, 17})});
  ExpectMatchesReference(BezierAlign{}, {f32({1, 0, 4, 4}), f32({2, 17})});
  ExpectMatchesReference(BezierAlign{}, {f32({1, 3, 0, 4}), f32({2, 17})});
}

TEST(BezierAlign, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 2); };
  ExpectError(BezierAlign{}, {f32({2, 3, 4, 4}), f32({1, 17})},
              {"'rois'[0, 0]: expected a batch index in [0, 2), got 2"});
  ExpectError(BezierAlign{}, {f32({2, 3, 4, 4}), f32({1, 16})}, {"'rois'", "expected dimension 1 to be 17, got 16"});
  ExpectAttributeError(*FindOp("bezier_align"), {{"output_width", AttrValue::Int(0)}},
                       {"'output_width': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_align_rotated/roi_align_rotated.h"

#include <cmath>
#include <numbers>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class RoiAlignRotatedTest : public ::testing::TestWithParam<DType> {};

TEST_P(RoiAlignRotatedTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t ratio : {-1, 0, 1, 2}) {
    for (bool aligned : {false, true}) {
      for (bool clockwise : {false, true}) {
        for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 17, 33, 7}, Shape{1, 16, 1, 1}}) {
          SCOPED_TRACE(ToString(shape) + " ratio " + std::to_string(ratio));
          const RoiAlignRotated op{.output_height = 3,
                                   .output_width = 4,
                                   .spatial_scale = 0.5f,
                                   .sampling_ratio = ratio,
                                   .aligned = aligned,
                                   .clockwise = clockwise};
          ExpectMatchesReference(
              op, {HostTensor::Uniform(GetParam(), shape, rng), RandomRotatedRois(GetParam(), 11, shape[0], 40, rng)},
              ToleranceFor(GetParam()));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoiAlignRotatedTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(RoiAlignRotated, ARotationBy90DegreesRotatesTheBins) {
  std::mt19937 rng(2);
  const HostTensor input = HostTensor::Uniform(DType::kF32, {1, 1, 20, 20}, rng);
  const RoiAlignRotated op{.output_height = 4, .output_width = 4, .sampling_ratio = 2};
  std::vector<HostTensor> straight, rotated;
  ASSERT_TRUE(testing::Run(op, {input, HostTensor::Of(DType::kF32, {1, 6}, {0, 9, 11, 8, 8, 0})}, &straight).ok());
  ASSERT_TRUE(
      testing::Run(op, {input, HostTensor::Of(DType::kF32, {1, 6}, {0, 9, 11, 8, 8, std::numbers::pi / 2})}, &rotated)
          .ok());
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 0; x < 4; ++x) EXPECT_NEAR(rotated[0].at(y * 4 + x), straight[0].at((3 - x) * 4 + y), 1e-5);
  }
}

TEST(RoiAlignRotated, EmptyNanAndHugeBoxes) {
  std::mt19937 rng(3);
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(RoiAlignRotated{}, {f32({1, 3, 4, 4}), f32({0, 6})});
  ExpectMatchesReference(RoiAlignRotated{}, {f32({1, 3, 0, 4}), f32({2, 6})});
  const HostTensor input = HostTensor::Uniform(DType::kF32, {1, 3, 8, 8}, rng);
  const HostTensor odd = HostTensor::Of(
      DType::kF32, {4, 6}, {0, NAN, 4, 4, 4, 0, 0, 4, 4, INFINITY, 4, 0, 0, 4, 4, 4, 4, NAN, 0, 1e9, 1e9, 4, 4, 0.3});
  ExpectMatchesReference(RoiAlignRotated{.sampling_ratio = 2}, {input, odd});
  const HostTensor huge = HostTensor::Of(DType::kF32, {2, 6}, {0, 4, 4, 1e9, 1e9, 0.7, 0, 4, 4, 3e6, 40, 2});
  ExpectMatchesReference(RoiAlignRotated{.output_height = 2, .output_width = 3}, {input, huge});
}

TEST(RoiAlignRotated, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectError(RoiAlignRotated{}, {f32({2, 3, 4, 4}), f32({1, 5})}, {"'rois'", "expected dimension 1 to be 6, got 5"});
  ExpectError(RoiAlignRotated{}, {f32({2, 3, 4, 4}), HostTensor::Of(DType::kF32, {1, 6}, {2, 0, 0, 1, 1, 0})},
              {"'rois'[0, 0]: expected a batch index in [0, 2), got 2"});
  ExpectAttributeError(*FindOp("roi_align_rotated"), {{"output_width", AttrValue::Int(-1)}},
                       {"'output_width': expected", "got -1"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/riroi_align_rotated/riroi_align_rotated.h"

#include <cmath>
#include <numbers>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class RiRoiAlignRotatedTest : public ::testing::TestWithParam<DType> {};

TEST_P(RiRoiAlignRotatedTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t samples : {-1, 0, 1, 2}) {
    for (int64_t orientations : {1, 4, 8}) {
      for (const Shape& shape : {Shape{2, 8, 9, 13}, Shape{1, 24, 17, 7}, Shape{3, 16, 1, 1}}) {
        SCOPED_TRACE(Concat(ToString(shape), ", ", samples, " samples, ", orientations, " orientations"));
        const RiRoiAlignRotated op{.pooled_height = 3,
                                   .pooled_width = 2,
                                   .spatial_scale = 0.5f,
                                   .num_samples = samples,
                                   .num_orientations = orientations,
                                   .clockwise = samples % 2 != 0};
        ExpectMatchesReference(
            op, {HostTensor::Uniform(GetParam(), shape, rng), RandomRotatedRois(GetParam(), 11, shape[0], 20, rng)},
            ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RiRoiAlignRotatedTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Pools a box from constant planes; the result shows which planes are used.
std::vector<double> Shifted(double angle, bool clockwise = false) {
  HostTensor planes(DType::kF32, {1, 8, 3, 3});
  for (int64_t i = 0; i < planes.size(); ++i) planes.set(i, static_cast<double>(i / 9 % 4 + i / 36 * 10));
  const RiRoiAlignRotated op{.num_samples = 1, .num_orientations = 4, .clockwise = clockwise};
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(op, {planes, HostTensor::Of(DType::kF32, {1, 6}, {0, 1, 1, 1, 1, angle})}, &out).ok());
  std::vector<double> values;
  for (int64_t c = 0; c < 8; ++c) values.push_back(out[0].at(c));
  return values;
}

TEST(RiRoiAlignRotated, OrientationsRotateWithTheBox) {
  using Row = std::vector<double>;
  const Row none = {0, 1, 2, 3, 10, 11, 12, 13}, one = {3, 0, 1, 2, 13, 10, 11, 12},
            back = {1, 2, 3, 0, 11, 12, 13, 10};
  EXPECT_EQ(Shifted(0), none);
  EXPECT_EQ(Shifted(std::numbers::pi / 2), one);
  EXPECT_EQ(Shifted(std::numbers::pi / 2, true), one);  // affects only the box
  EXPECT_EQ(Shifted(-std::numbers::pi / 2), back);
  EXPECT_EQ(Shifted(2 * std::numbers::pi), none);
  EXPECT_EQ(Shifted(-8.5 * std::numbers::pi), back);  // more than a full rotation backwards
  const Row half = Shifted(std::numbers::pi / 4), mixed = {0.5, 1.5, 2.5, 1.5, 10.5, 11.5, 12.5, 11.5};
  for (size_t c = 0; c < 8; ++c) EXPECT_NEAR(half[c], mixed[c], 1e-6) << c;
}

TEST(RiRoiAlignRotated, EmptyNanAndHugeBoxes) {
  std::mt19937 rng(3);
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  const RiRoiAlignRotated op{.num_samples = 2, .num_orientations = 3};
  ExpectMatchesReference(op, {f32({1, 3, 4, 4}), f32({0, 6})});
  ExpectMatchesReference(op, {f32({1, 3, 0, 4}), f32({2, 6})});
  ExpectMatchesReference(op, {f32({1, 0, 4, 4}), f32({2, 6})});
  const HostTensor odd = HostTensor::Of(DType::kF32, {6, 6},
                                        {0, NAN, 4,   4, 4, 0,   0, 4, 4, INFINITY, 4, 0,         0, 4, 4, 4, 4, NAN,
                                         0, 1e9, 1e9, 4, 4, 0.3, 0, 4, 4, 4,        4, -INFINITY, 0, 4, 4, 4, 4, 3e38});
  ExpectMatchesReference(op, {HostTensor::Uniform(DType::kF32, {1, 6, 8, 8}, rng), odd});
}

TEST(RiRoiAlignRotated, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 2); };
  const RiRoiAlignRotated op{.num_orientations = 4};
  ExpectError(op, {f32({2, 6, 4, 4}), f32({1, 6})},
              {"'input': expected a multiple of num_orientations = 4 channels, got 6"});
  ExpectError(op, {f32({2, 8, 4, 4}), f32({1, 5})}, {"'rois'", "expected dimension 1 to be 6, got 5"});
  ExpectError(op, {f32({2, 8, 4, 4}), f32({1, 6})}, {"'rois'[0, 0]: expected a batch index in [0, 2), got 2"});
  ExpectAttributeError(*FindOp("riroi_align_rotated"), {{"num_orientations", AttrValue::Int(0)}},
                       {"'num_orientations': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing

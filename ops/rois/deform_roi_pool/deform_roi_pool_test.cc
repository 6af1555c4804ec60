// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/deform_roi_pool/deform_roi_pool.h"

#include <cmath>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class DeformRoiPoolTest : public ::testing::TestWithParam<DType> {};

TEST_P(DeformRoiPoolTest, MatchesReference) {
  std::mt19937 rng(1);
  for (float ratio : {-1.0f, 0.0f, 1.0f, 2.0f, 5.0f}) {
    for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 49, 11, 7}, Shape{3, 16, 1, 1}}) {
      const DeformRoiPool op{3, 2, 0.75f, ratio, 0.3f};
      const std::vector<HostTensor> inputs = {HostTensor::Uniform(GetParam(), shape, rng),
                                              RandomRoisWithSides(GetParam(), 11, shape[0], 0, rng),
                                              HostTensor::Uniform(GetParam(), {11, 2, 3, 2}, rng, -2, 2)};
      ExpectMatchesReference(op, inputs, ToleranceFor(GetParam()));
      ExpectMatchesReference(op, {inputs[0], inputs[1]}, ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeformRoiPoolTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// On an image that grows by 1 per column and by 10 per row, a bin's average is the value at its centre.
TEST(DeformRoiPool, OffsetsShiftBins) {
  HostTensor ramp(DType::kF32, {1, 1, 20, 20});
  for (int64_t i = 0; i < ramp.size(); ++i) ramp.set(i, static_cast<double>(i % 20 + i / 20 * 10));
  const HostTensor roi = HostTensor::Of(DType::kF32, {1, 5}, {0, 4.5, 6.5, 8.5, 14.5});  // 4 wide, 8 high
  HostTensor offset = HostTensor::Full(DType::kF32, {1, 2, 2, 2}, 0);
  offset.set(1, 0.5);   // bin (0, 1): 0.5 * 0.5 * 4 to the right
  offset.set(6, -0.5);  // bin (1, 0): 0.5 * 0.5 * 8 up
  const DeformRoiPool op{2, 2, 1, 2, 0.5f};
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(op, {ramp, roi, offset}, &out).ok());
  const double expected[4] = {5 + 80, 7 + 1 + 80, 5 + 120 - 20, 7 + 120};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(out[0].at(i), expected[i], 1e-4) << i;
}

TEST(DeformRoiPool, NanInfiniteAndHugeBoxes) {
  std::mt19937 rng(3);
  const HostTensor input = HostTensor::Uniform(DType::kF32, {1, 3, 8, 8}, rng);
  const HostTensor rois = HostTensor::Of(DType::kF32, {5, 5}, {0, NAN,  0,    4,        4,    //
                                                               0, 0,    0,    INFINITY, 4,    //
                                                               0, 0,    0,    4,        4,    //
                                                               0, -1e6, -1e6, 1e6,      1e6,  //
                                                               0, 1e38, 1e38, -1e38,    -1e38});
  HostTensor offset = HostTensor::Uniform(DType::kF32, {5, 2, 1, 3}, rng);
  offset.set(2 * 6, NAN);
  offset.set(2 * 6 + 4, INFINITY);
  offset.set(2 * 6 + 5, 1e30);
  for (float ratio : {0.0f, 2.0f, -3e38f}) {
    ExpectMatchesReference(DeformRoiPool{1, 3, 1, ratio, 0.1f}, {input, rois, offset});
  }
}

TEST(DeformRoiPool, EmptyInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(DeformRoiPool{}, {f32({1, 3, 4, 4}), f32({0, 5})});
  ExpectMatchesReference(DeformRoiPool{}, {f32({1, 0, 4, 4}), f32({2, 5})});
  ExpectMatchesReference(DeformRoiPool{}, {f32({1, 3, 0, 4}), f32({2, 5}), f32({2, 2, 1, 1})});
}

TEST(DeformRoiPool, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 2); };
  ExpectError(DeformRoiPool{}, {f32({2, 3, 4, 4}), f32({1, 5})},
              {"'rois'[0, 0]: expected a batch index in [0, 2), got 2"});
  ExpectError(DeformRoiPool{2, 3}, {f32({3, 3, 4, 4}), f32({1, 5}), f32({1, 2, 3, 2})},
              {"'offset'", "expected dimension 2", "got 3", "pooled_height = 2"});
  ExpectAttributeError(*FindOp("deform_roi_pool"), {{"sampling_ratio", AttrValue::Float(1.5)}},
                       {"'sampling_ratio': expected an integer, got 1.5"});
}

}  // namespace
}  // namespace polyop::testing

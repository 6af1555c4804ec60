// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/tensorrt_roi_align/tensorrt_roi_align.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = TensorrtRoiAlign::Mode;
using Transformation = TensorrtRoiAlign::Transformation;

// Returns images, boxes inside, partly outside and entirely outside of them, some of them reversed, and batch indices.
std::vector<HostTensor> RandomInputs(DType dtype, DType index, const Shape& shape, int64_t count, std::mt19937& rng) {
  std::uniform_int_distribution<int64_t> image(0, shape[0] - 1);
  HostTensor rois = HostTensor::Uniform(dtype, {count, 4}, rng, -15, 60), indices(index, {count});
  for (int64_t r = 0; r < count; ++r) indices.set(r, static_cast<double>(image(rng)));
  return {HostTensor::Uniform(dtype, shape, rng), rois, indices};
}

class TensorrtRoiAlignTest : public ::testing::TestWithParam<DType> {};

TEST_P(TensorrtRoiAlignTest, MatchesReference) {
  std::mt19937 rng(1);
  for (auto mode : {Mode::kAvg, Mode::kMax}) {
    for (auto transformation : {Transformation::kNone, Transformation::kHalfPixel}) {
      for (int64_t ratio : {0, 1, 3}) {
        for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 17, 33, 7}}) {
          const TensorrtRoiAlign op{.coordinate_transformation_mode = transformation,
                                    .mode = mode,
                                    .output_height = 3,
                                    .output_width = 4,
                                    .sampling_ratio = ratio,
                                    .spatial_scale = 0.5f};
          const DType index = ratio == 0 ? DType::kI64 : DType::kI32;
          ExpectMatchesReference(op, RandomInputs(GetParam(), index, shape, 11, rng), ToleranceFor(GetParam()));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, TensorrtRoiAlignTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(TensorrtRoiAlign, TheMaximumIsOfWeightedPixels) {
  const TensorrtRoiAlign op{.mode = Mode::kMax, .sampling_ratio = 1};
  const auto pool = [&](const std::vector<double>& pixels, const std::vector<double>& box) {
    std::vector<HostTensor> out;
    EXPECT_TRUE(testing::Run(op,
                             {HostTensor::Of(DType::kF32, {1, 1, 2, 2}, pixels),
                              HostTensor::Of(DType::kF32, {1, 4}, box), HostTensor::Of(DType::kI32, {1}, {0})},
                             &out)
                    .ok());
    return out[0].at(0);
  };
  EXPECT_EQ(pool({1, 2, 3, 4}, {0, 0, 2, 2}), 1);        // a quarter of 4; the sample is 2.5
  EXPECT_EQ(pool({-4, -4, -4, -8}, {0, 0, 2, 2}), -1);   // negative maxima are not clamped to 0
  EXPECT_EQ(pool({-4, -4, -4, -8}, {0, 0, 1, 1}), 0);    // a sample at a pixel: the other three have weight 0
  EXPECT_EQ(pool({-4, -4, -4, -8}, {8, 8, 10, 10}), 0);  // outside
  EXPECT_EQ(pool({-4, NAN, -4, -8}, {0, 0, 2, 2}), -1);
}

TEST(TensorrtRoiAlign, EmptyAndInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  const auto i32 = [](const std::vector<double>& values) {
    return HostTensor::Of(DType::kI32, {static_cast<int64_t>(values.size())}, values);
  };
  for (const Mode mode : {Mode::kMax, Mode::kAvg}) {
    ExpectMatchesReference(TensorrtRoiAlign{.mode = mode}, {f32({1, 3, 4, 4}), f32({0, 4}), i32({})});
    ExpectMatchesReference(TensorrtRoiAlign{.mode = mode}, {f32({1, 3, 0, 4}), f32({1, 4}), i32({0})});
  }
  for (double index : {2.0, -1.0}) {
    ExpectError(TensorrtRoiAlign{}, {f32({2, 3, 4, 4}), f32({2, 4}), i32({0, index})},
                {"'batch_indices'[1]: expected a batch index in [0, 2), got "});
  }
  ExpectError(TensorrtRoiAlign{}, {f32({2, 3, 4, 4}), f32({2, 5}), i32({0, 0})},
              {"'rois'", "expected dimension 1 to be 4, got 5"});
  ExpectError(TensorrtRoiAlign{}, {f32({2, 3, 4, 4}), f32({2, 4}), i32({0})}, {"'batch_indices'", "to be R = 2"});
  ExpectAttributeError(*FindOp("tensorrt_roi_align"), {{"mode", AttrValue::Int(2)}}, {"'mode': expected", "got 2"});
}

}  // namespace
}  // namespace polyop::testing

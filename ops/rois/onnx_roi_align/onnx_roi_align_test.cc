// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/onnx_roi_align/onnx_roi_align.h"

#include "core/cuda_context.h"
#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = OnnxRoiAlign::Mode;
using Transformation = OnnxRoiAlign::Transformation;

// Returns images, boxes inside, partly outside and entirely outside of them, some of them reversed, and batch indices.
std::vector<HostTensor> RandomInputs(DType dtype, const Shape& shape, int64_t count, std::mt19937& rng) {
  std::uniform_int_distribution<int64_t> image(0, shape[0] - 1);
  HostTensor rois = HostTensor::Uniform(dtype, {count, 4}, rng, -15, 60), indices(DType::kI64, {count});
  for (int64_t r = 0; r < count; ++r) indices.set(r, static_cast<double>(image(rng)));
  return {HostTensor::Uniform(dtype, shape, rng), rois, indices};
}

class OnnxRoiAlignTest : public ::testing::TestWithParam<DType> {};

TEST_P(OnnxRoiAlignTest, MatchesReference) {
  std::mt19937 rng(1);
  for (auto mode : {Mode::kAvg, Mode::kMax}) {
    for (auto transformation : {Transformation::kHalfPixel, Transformation::kOutputHalfPixel}) {
      for (int64_t ratio : {-1, 0, 1, 2, 3}) {
        for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 17, 33, 7}, Shape{3, 1, 20, 20}}) {
          SCOPED_TRACE(ToString(shape) + " ratio " + std::to_string(ratio));
          const OnnxRoiAlign op{{.coordinate_transformation_mode = transformation,
                                 .mode = mode,
                                 .output_height = 3,
                                 .output_width = 4,
                                 .sampling_ratio = ratio,
                                 .spatial_scale = 0.5f}};
          ExpectMatchesReference(op, RandomInputs(GetParam(), shape, 11, rng), ToleranceFor(GetParam()));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, OnnxRoiAlignTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(OnnxRoiAlign, EmptyAndInvalidInputs) {
  std::mt19937 rng(2);
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  const auto i64 = [](const std::vector<double>& values) {
    return HostTensor::Of(DType::kI64, {static_cast<int64_t>(values.size())}, values);
  };
  ExpectMatchesReference(OnnxRoiAlign{}, {f32({1, 3, 4, 4}), f32({0, 4}), i64({})});
  ExpectMatchesReference(OnnxRoiAlign{}, {f32({1, 3, 0, 4}), f32({1, 4}), i64({0})});
  for (double index : {2.0, -1.0, 1e18}) {
    ExpectError(OnnxRoiAlign{}, {f32({2, 3, 4, 4}), f32({2, 4}), i64({0, index})},
                {"'batch_indices'[1]: expected a batch index in [0, 2), got "});
  }
  ExpectError(OnnxRoiAlign{}, {f32({2, 3, 4, 4}), f32({2, 5}), i64({0, 0})},
              {"'rois'", "expected dimension 1 to be 4, got 5"});
  ExpectError(OnnxRoiAlign{}, {f32({2, 3, 4, 4}), f32({2, 4}), i64({0})},
              {"'batch_indices'", "expected dimension 0 to be R = 2", "got 1"});
  ExpectError(OnnxRoiAlign{}, {f32({2, 3, 4, 4}), f32({2, 4})}, {"inputs, got 2"});
  ExpectAttributeError(*FindOp("onnx_roi_align"), {{"coordinate_transformation_mode", AttrValue::String("pixel")}},
                       {"expected one of {half_pixel, output_half_pixel}, got pixel"});
}

// Float does not distinguish these indices, and rounds the last one up to the number of images.
TEST(OnnxRoiAlign, ImagesAboveTheIntegersOfFloat) {
  constexpr int64_t kImages = (int64_t{1} << 24) + 4;
  HostTensor x = HostTensor::Full(DType::kF32, {kImages, 1, 1, 1}, 0);
  for (int64_t i = 1; i <= 8; ++i) x.set(kImages - i, static_cast<double>(i));
  const HostTensor rois = HostTensor::Of(DType::kF32, {3, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
  const HostTensor indices = HostTensor::Of(DType::kI64, {3}, {kImages - 1, kImages - 3, kImages - 8});
  std::vector<HostTensor> out;
  for (const Device device : {Device::kCpu, GpuDevice()}) {
    RunOptions options;
    options.device = device;
    ASSERT_TRUE(testing::Run(OnnxRoiAlign{}, {x, rois, indices}, &out, options).ok());
    EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{1, 3, 8}));
  }
}

TEST(OnnxRoiAlign, SameAtAnyAlignment) {
  std::mt19937 rng(5);
  const OnnxRoiAlign op{{.output_height = 7, .output_width = 5, .sampling_ratio = 1}};
  ExpectSameAtAnyAlignment(op, RandomInputs(DType::kF32, {1, 40, 20, 20}, 900, rng));
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/tensorrt_roi_align/tensorrt_roi_align_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = TensorrtRoiAlign::Mode;
using Transformation = TensorrtRoiAlign::Transformation;

TensorrtRoiAlignBackward Backward(Mode mode, int64_t rows, int64_t columns, int64_t ratio,
                                  Transformation transformation = Transformation::kHalfPixel) {
  TensorrtRoiAlignBackward op;
  op.mode = mode;
  op.output_height = rows;
  op.output_width = columns;
  op.sampling_ratio = ratio;
  op.coordinate_transformation_mode = transformation;
  return op;
}

// Returns gradients, images, boxes of which some are reversed or outside, and batch indices.
std::vector<HostTensor> Inputs(const TensorrtRoiAlignBackward& op, DType dtype, DType index, const Shape& map,
                               int64_t count, std::mt19937& rng) {
  HostTensor indices(index, {count});
  for (int64_t r = 0; r < count; ++r) indices.set(r, static_cast<double>(r % map[0]));
  return {HostTensor::Uniform(dtype, {count, map[1], op.output_height, op.output_width}, rng),
          HostTensor::Uniform(dtype, map, rng), HostTensor::Uniform(dtype, {count, 4}, rng, -4, 20), indices};
}

class TensorrtRoiAlignBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(TensorrtRoiAlignBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (auto mode : {Mode::kAvg, Mode::kMax}) {
    for (auto transformation : {Transformation::kNone, Transformation::kHalfPixel}) {
      for (int64_t ratio : {0, 1, 3}) {
        for (const Shape& map : {Shape{2, 3, 9, 13}, Shape{1, 17, 23, 7}, Shape{1, 16, 1, 1}}) {
          SCOPED_TRACE(ToString(map) + " ratio " + std::to_string(ratio));
          const TensorrtRoiAlignBackward op = Backward(mode, 3, 4, ratio, transformation);
          const DType index = ratio == 0 ? DType::kI64 : DType::kI32;
          ExpectMatchesReference(op, Inputs(op, GetParam(), index, map, 11, rng), ToleranceFor(GetParam()));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, TensorrtRoiAlignBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Returns the gradient of a map of 2 x 2 pixels for the gradient 8 of one bin with `ratio` x `ratio` samples.
std::vector<double> OfSmallMap(const std::vector<double>& pixels, const std::vector<double>& box, int64_t ratio = 1) {
  const TensorrtRoiAlignBackward op = Backward(Mode::kMax, 1, 1, ratio);
  const std::vector<HostTensor> inputs = {
      HostTensor::Full(DType::kF32, {1, 1, 1, 1}, 8), HostTensor::Of(DType::kF32, {1, 1, 2, 2}, pixels),
      HostTensor::Of(DType::kF32, {1, 4}, box), HostTensor::Of(DType::kI32, {1}, {0})};
  ExpectMatchesReference(op, inputs);
  std::vector<HostTensor> grad;
  EXPECT_TRUE(testing::Run(op, inputs, &grad).ok());
  return {grad[0].at(0), grad[0].at(1), grad[0].at(2), grad[0].at(3)};
}

TEST(TensorrtRoiAlignBackward, TheLargestWeightedPixelGetsTheGradient) {
  using Pixels = std::vector<double>;
  EXPECT_EQ(OfSmallMap({1, 2, 3, 4}, {0, 0, 2, 2}), (Pixels{0, 0, 0, 2}));      // a quarter
  EXPECT_EQ(OfSmallMap({-4, -4, -3, -8}, {0, 0, 2, 2}), (Pixels{0, 0, 2, 0}));  // the maximum may be negative
  EXPECT_EQ(OfSmallMap({-4, -4, -4, -8}, {0, 0, 1, 1}), (Pixels{0, 0, 0, 0}));  // three pixels have the weight 0
  EXPECT_EQ(OfSmallMap({5, 5, 5, 5}, {8, 8, 10, 10}), (Pixels{0, 0, 0, 0}));    // outside
  EXPECT_EQ(OfSmallMap({5, 5, 5, 5}, {0, 0, 2, 2}), (Pixels{2, 0, 0, 0}));      // the first of equal ones
  EXPECT_EQ(OfSmallMap({5, 5, 5, 5}, {2, 2, 0, 0}), (Pixels{2, 0, 0, 0}));      // also in a reversed box
  EXPECT_EQ(OfSmallMap({NAN, 1, NAN, 2}, {0, 0, 2, 2}), (Pixels{0, 0, 0, 2}));  // NaN is ignored
  EXPECT_EQ(OfSmallMap({0, 0, 0, 0}, {0.5, 0.5, 1.5, 1.5}, 2),
            (Pixels{4.5, 0, 0, 0}));  // the largest weight of a pixel
  EXPECT_EQ(OfSmallMap({-1, -9, -9, -9}, {0.5, 0.5, 1.5, 1.5}, 2), (Pixels{0.5, 0, 0, 0}));  // its smallest weight
}

// The average is linear in the map, so <grad, pool(x)> = <backward(grad), x>.
TEST(TensorrtRoiAlignBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const TensorrtRoiAlignBackward op = Backward(Mode::kAvg, 7, 7, 2);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, DType::kI32, {2, 20, 30, 40}, 40, rng);
  std::vector<HostTensor> grad, pooled;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(static_cast<const TensorrtRoiAlign&>(op), {inputs[1], inputs[2], inputs[3]}, &pooled).ok());
  EXPECT_NEAR(InnerProduct(pooled[0], inputs[0]), InnerProduct(grad[0], inputs[1]), 1e-3);
}

TEST(TensorrtRoiAlignBackward, GivesZerosWithoutBoxes) {
  std::mt19937 rng(3);
  for (auto mode : {Mode::kAvg, Mode::kMax}) {
    const TensorrtRoiAlignBackward op = Backward(mode, 2, 2, 2);
    ExpectMatchesReference(op, Inputs(op, DType::kF32, DType::kI32, {2, 3, 5, 4}, 0, rng));
    ExpectMatchesReference(op, Inputs(op, DType::kF32, DType::kI64, {1, 3, 0, 4}, 2, rng));
  }
}

TEST(TensorrtRoiAlignBackward, EndsAtOnceForAHugeBox) {
  std::mt19937 rng(5);
  for (auto mode : {Mode::kAvg, Mode::kMax}) {
    const TensorrtRoiAlignBackward op = Backward(mode, 1, 3, 0);
    std::vector<HostTensor> inputs = Inputs(op, DType::kF32, DType::kI32, {1, 3, 8, 8}, 2, rng);
    inputs[2] = HostTensor::Of(DType::kF32, {2, 4}, {-5e8, -5e8, 5e8, 5e8, NAN, 0, INFINITY, 3});
    ExpectMatchesReference(op, inputs);
  }
}

TEST(TensorrtRoiAlignBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const TensorrtRoiAlignBackward op = Backward(Mode::kMax, 2, 2, 2);
  const std::vector<HostTensor> good = Inputs(op, DType::kF32, DType::kI32, {2, 3, 5, 4}, 2, rng);
  const auto with = [&](size_t i, const HostTensor& tensor) {
    std::vector<HostTensor> inputs = good;
    inputs[i] = tensor;
    return inputs;
  };
  ExpectError(op, with(0, HostTensor::Full(DType::kF32, {2, 3, 2, 3}, 0)), {"'grad_Y'", "(output_width) = 2"});
  ExpectError(op, with(1, HostTensor::Full(DType::kF32, {2, 4, 5, 4}, 0)), {"'X'", "C = 3"});
  ExpectError(op, with(3, HostTensor::Of(DType::kI32, {2}, {0, 2})), {"'batch_indices'[1]", "got 2"});
}

}  // namespace
}  // namespace polyop::testing

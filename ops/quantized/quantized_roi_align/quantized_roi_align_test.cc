// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_roi_align/quantized_roi_align.h"

#include "ops/quantized/quantized_test.h"

namespace polyop::testing {
namespace {

using Mode = QuantizedRoiAlign::Mode;

std::vector<HostTensor> Inputs(DType dtype, const Shape& shape, int64_t count, std::mt19937& rng) {
  HostTensor rois = HostTensor::Uniform(DType::kF32, {count, 4}, rng, -15, 60);
  return {RandomCodes(dtype, shape, rng), rois,
          HostTensor::Uniform(DType::kI64, {count}, rng, 0, static_cast<double>(shape[0]))};
}

TEST(QuantizedRoiAlign, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kI8, DType::kU8}) {
    for (Mode mode : {Mode::kAvg, Mode::kMax}) {
      for (int64_t ratio : {0, 1, 2, 3}) {
        for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 40, 33, 7}, Shape{3, 1, 20, 20}}) {
          SCOPED_TRACE(Concat(ToString(shape), " ratio ", ratio, " ", NameOf(dtype)));
          QuantizedRoiAlign op;
          op.mode = mode;
          op.output_height = 3;
          op.output_width = 5;
          op.sampling_ratio = ratio;
          op.spatial_scale = 0.37f;
          op.input_scale = 0.031f;
          op.output_scale = 0.027f;
          op.input_zero_point = dtype == DType::kI8 ? -7 : 131;
          op.output_zero_point = dtype == DType::kI8 ? 11 : 100;
          ExpectWithinOneStep(op, Inputs(dtype, shape, 11, rng));
        }
      }
    }
  }
}

TEST(QuantizedRoiAlign, BinsOutsideAreTheZeroPointAndLargeOnesAreClamped) {
  QuantizedRoiAlign op;
  op.input_zero_point = 3;
  op.output_zero_point = 200;
  op.output_scale = 0.125f;
  const HostTensor x = HostTensor::Full(DType::kU8, {1, 9, 8, 8}, 43);
  const HostTensor rois = HostTensor::Of(DType::kF32, {2, 4}, {100, 100, 110, 110, 2, 2, 4, 4});
  std::vector<HostTensor> y;
  ASSERT_TRUE(testing::Run(op, {x, rois, HostTensor::Of(DType::kI64, {2}, {0, 0})}, &y).ok());
  for (int64_t c = 0; c < 9; ++c) {
    EXPECT_EQ(y[0].at(c), 200);
    EXPECT_EQ(y[0].at(9 + c), 255);  // 200 + 40 / 0.125
  }
}

TEST(QuantizedRoiAlign, EmptyAndInvalidInputs) {
  std::mt19937 rng(2);
  QuantizedRoiAlign op;
  ExpectWithinOneStep(op, Inputs(DType::kI8, {1, 3, 4, 4}, 0, rng));
  ExpectWithinOneStep(op, Inputs(DType::kI8, {1, 3, 0, 4}, 2, rng));
  op.input_zero_point = 128;
  ExpectError(op, Inputs(DType::kI8, {1, 3, 4, 4}, 1, rng),
              {"attribute 'input_zero_point': expected a value of i8, -128 to 127, got 128"});
  op.input_zero_point = -1;
  ExpectError(op, Inputs(DType::kU8, {1, 3, 4, 4}, 1, rng), {"expected a value of u8, 0 to 255, got -1"});
  op.input_zero_point = 0;
  std::vector<HostTensor> inputs = Inputs(DType::kU8, {1, 3, 4, 4}, 1, rng);
  inputs[2].set(0, 1);
  ExpectError(op, inputs, {"'batch_indices'[0]: expected a batch index in [0, 1), got 1"});
  inputs[0] = HostTensor::Full(DType::kF32, {1, 3, 4, 4}, 1);
  ExpectError(op, inputs, {"no kernel takes"});
}

}  // namespace
}  // namespace polyop::testing

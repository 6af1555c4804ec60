// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_deform_conv/quantized_deform_conv.h"

#include "ops/quantized/quantized_test.h"

namespace polyop::testing {
namespace {

// Inputs for a filter of 3 x 2 points with steps of the weights that differ by filter.
std::vector<HostTensor> Inputs(const QuantizedDeformConv& op, DType dtype, const Shape& image, int64_t filters,
                               std::mt19937& rng) {
  const int64_t n = image[0], oh = (image[2] + op.pads[0] + op.pads[2] - op.dilations[0] * 2 - 1) / op.strides[0] + 1;
  const int64_t ow = (image[3] + op.pads[1] + op.pads[3] - op.dilations[1] - 1) / op.strides[1] + 1;
  return {RandomCodes(dtype, image, rng),
          HostTensor::Uniform(DType::kI8, {filters, image[1] / op.group, 3, 2}, rng, -127, 128),
          HostTensor::Uniform(DType::kF32, {filters}, rng, 0.001, 0.01),
          HostTensor::Uniform(DType::kF32, {n, op.offset_group * 12, oh, ow}, rng, -3, 3),
          HostTensor::Uniform(DType::kF32, {filters}, rng),
          HostTensor::Uniform(DType::kF32, {n, op.offset_group * 6, oh, ow}, rng, 0, 1)};
}

QuantizedDeformConv Convolution(DType dtype, int64_t group, int64_t offset_group) {
  QuantizedDeformConv op;
  op.dilations = {1, 2};
  op.group = group;
  op.offset_group = offset_group;
  op.pads = {1, 0, 2, 3};
  op.strides = {2, 1};
  op.input_scale = 0.02f;
  op.output_scale = 0.11f;
  op.input_zero_point = dtype == DType::kI8 ? 5 : 120;
  op.output_zero_point = dtype == DType::kI8 ? -3 : 140;
  return op;
}

TEST(QuantizedDeformConv, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kI8, DType::kU8}) {
    for (int64_t group : {1, 6}) {
      for (int64_t offset_group : {1, 3}) {
        for (int left_out : {0, 1, 2, 3}) {
          SCOPED_TRACE(Concat(NameOf(dtype), ", groups ", group, " and ", offset_group));
          const QuantizedDeformConv op = Convolution(dtype, group, offset_group);
          std::vector<HostTensor> inputs = Inputs(op, dtype, {2, 12, 9, 7}, 18, rng);
          if ((left_out & 1) != 0) inputs[4] = HostTensor::Absent();
          if ((left_out & 2) != 0) inputs[5] = HostTensor::Absent();
          ExpectWithinOneStep(op, inputs);
        }
      }
    }
  }
}

TEST(QuantizedDeformConv, ManyChannels) {
  std::mt19937 rng(2);
  QuantizedDeformConv op = Convolution(DType::kI8, 1, 1);
  op.output_scale = 0.5f;
  ExpectWithinOneStep(op, Inputs(op, DType::kI8, {1, 130, 14, 13}, 37, rng));
}

// Offsets of 0 and a mask of 1: a convolution of integers.
TEST(QuantizedDeformConv, WithoutOffsetsIsAConvolution) {
  QuantizedDeformConv op;
  op.output_zero_point = 10;
  const HostTensor x = HostTensor::Of(DType::kU8, {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const HostTensor w = HostTensor::Of(DType::kI8, {2, 1, 2, 2}, {1, 0, 0, -1, 1, 1, 1, 1});
  const HostTensor scale = HostTensor::Of(DType::kF32, {2}, {1, 0.5});
  std::vector<HostTensor> outputs;
  const std::vector<HostTensor> inputs = {x,
                                          w,
                                          scale,
                                          HostTensor::Full(DType::kF32, {1, 8, 2, 2}, 0),
                                          HostTensor::Of(DType::kF32, {2}, {0, 100}),
                                          HostTensor::Full(DType::kF32, {1, 4, 2, 2}, 1)};
  ASSERT_TRUE(testing::Run(op, inputs, &outputs).ok());
  EXPECT_EQ(outputs[0].ToDoubles(), (std::vector<double>{6, 6, 6, 6, 116, 118, 122, 124}));
}

TEST(QuantizedDeformConv, RejectsInvalidInputs) {
  std::mt19937 rng(3);
  QuantizedDeformConv op = Convolution(DType::kI8, 1, 1);
  std::vector<HostTensor> inputs = Inputs(op, DType::kI8, {1, 12, 9, 7}, 6, rng);
  op.kernel_shape = {3, 3};
  ExpectError(op, inputs, {"'kernel_shape'[1]: expected the extent 2 of 'W', got 3"});
  op.kernel_shape = {0, 0};
  op.input_zero_point = 128;
  ExpectError(op, inputs, {"'input_zero_point'", "got 128"});
  op.input_zero_point = 0;
  inputs[2] = HostTensor::Full(DType::kF32, {5}, 1);
  ExpectError(op, inputs, {"'W_scale'"});
}

}  // namespace
}  // namespace polyop::testing

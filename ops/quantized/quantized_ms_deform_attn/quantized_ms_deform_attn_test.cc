// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_ms_deform_attn/quantized_ms_deform_attn.h"

#include "ops/quantized/quantized_test.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(DType dtype, int64_t queries, int64_t heads, int64_t depth, std::mt19937& rng) {
  return {RandomCodes(dtype, {2, 58, heads, depth}, rng), HostTensor::Of(DType::kI64, {2, 2}, {6, 8, 2, 5}),
          HostTensor::Of(DType::kI64, {2}, {0, 48}),
          HostTensor::Uniform(DType::kF32, {2, queries, heads, 2, 4, 2}, rng, -0.2, 1.2),
          HostTensor::Uniform(DType::kF32, {2, queries, heads, 2, 4}, rng, 0, 0.25)};
}

TEST(QuantizedMsDeformAttn, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kI8, DType::kU8}) {
    for (int64_t depth : {1, 7, 8, 32, 45}) {
      SCOPED_TRACE(Concat(NameOf(dtype), ", head size ", depth));
      QuantizedMsDeformAttn op;
      op.input_scale = 0.03f;
      op.output_scale = 0.04f;
      op.input_zero_point = dtype == DType::kI8 ? -9 : 118;
      op.output_zero_point = dtype == DType::kI8 ? 2 : 130;
      ExpectWithinOneStep(op, Inputs(dtype, 21, 3, depth, rng));
    }
  }
}

TEST(QuantizedMsDeformAttn, SamplesOutsideAreTheZeroPoint) {
  std::mt19937 rng(2);
  QuantizedMsDeformAttn op;
  op.output_zero_point = 77;
  std::vector<HostTensor> inputs = Inputs(DType::kU8, 3, 2, 9, rng), outputs;
  inputs[3] = HostTensor::Full(DType::kF32, inputs[3].shape(), 9);
  ASSERT_TRUE(testing::Run(op, inputs, &outputs).ok());
  for (int64_t i = 0; i < outputs[0].size(); ++i) EXPECT_EQ(outputs[0].at(i), 77);
}

TEST(QuantizedMsDeformAttn, RejectsInvalidInputs) {
  std::mt19937 rng(3);
  QuantizedMsDeformAttn op;
  std::vector<HostTensor> inputs = Inputs(DType::kI8, 3, 2, 9, rng);
  inputs[2].set(1, 50);
  ExpectError(op, inputs, {"'spatial_shapes'[1]: expected a level within the 58 pixels of 'value'"});
  op.input_zero_point = -129;
  ExpectError(op, inputs, {"'input_zero_point'"});
}

}  // namespace
}  // namespace polyop::testing

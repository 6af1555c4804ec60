// SPDX-License-Identifier: Apache-2.0
// The kernel is that of modulated_deform_conv2d, which has the thorough test; this one tests the definition.
// tests/runtimes/test_openvino.py compares it with OpenVINO's kernel.
#include "ops/deform/openvino_deform_conv2d/openvino_deform_conv2d.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(const OpenvinoDeformConv2d& op, DType dtype, std::mt19937& rng) {
  const int64_t oh = (9 + op.pads[0] + op.pads[2] - op.dilations[0] * 2 - 1) / op.strides[0] + 1;
  const int64_t ow = (7 + op.pads[1] + op.pads[3] - op.dilations[1] - 1) / op.strides[1] + 1;
  return {HostTensor::Uniform(dtype, {2, 12, 9, 7}, rng),
          HostTensor::Uniform(dtype, {2, op.deformable_groups * 12, oh, ow}, rng, -3, 3),
          HostTensor::Uniform(dtype, {6, 12 / op.group, 3, 2}, rng)};
}

TEST(OpenvinoDeformConv2d, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (int64_t group : {1, 2, 6}) {
      for (int64_t step : {1, 2}) {
        const OpenvinoDeformConv2d op{
            .strides = {step, 1}, .pads = {1, 0, 2, 3}, .dilations = {1, step}, .group = group, .deformable_groups = 3};
        Tolerance tolerance = ToleranceFor(dtype);
        tolerance.absolute *= 10;  // sums of up to 72 products
        ExpectMatchesReference(op, Inputs(op, dtype, rng), tolerance);
      }
    }
  }
}

// Padding that is written into the image as zeros gives the same result.
TEST(OpenvinoDeformConv2d, PadsEachSideSeparately) {
  std::mt19937 rng(2);
  const OpenvinoDeformConv2d padded{.pads = {1, 0, 2, 3}}, bare;
  std::vector<HostTensor> inputs = Inputs(padded, DType::kF32, rng), larger = inputs;
  larger[0] = HostTensor::Full(DType::kF32, {2, 12, 12, 10}, 0);
  for (int64_t i = 0; i < inputs[0].size(); ++i) {
    const int64_t plane = i / 63, row = i / 7 % 9, column = i % 7;
    larger[0].set((plane * 12 + row + 1) * 10 + column, inputs[0].at(i));
  }
  std::vector<HostTensor> expected, got;
  ASSERT_TRUE(testing::Run(bare, larger, &expected).ok());
  ASSERT_TRUE(testing::Run(padded, inputs, &got).ok());
  ASSERT_EQ(got[0].shape(), expected[0].shape());
  for (int64_t i = 0; i < got[0].size(); ++i) EXPECT_NEAR(got[0].at(i), expected[0].at(i), 1e-4) << i;
}

TEST(OpenvinoDeformConv2d, RejectsInvalidInputs) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = Inputs(OpenvinoDeformConv2d{}, DType::kF32, rng);
  inputs[1] = HostTensor::Full(DType::kF32, {2, 13, 7, 6}, 0);
  ExpectError(OpenvinoDeformConv2d{}, inputs, {"'offset'", "to be 2*deformable_groups*KH*KW = 12"});
  const Op& op = *FindOp("openvino_deform_conv2d");
  ExpectAttributeError(op, {{"pads", AttrValue::Ints({1, 1})}}, {"'pads': expected 4 values, got 2"});
  ExpectAttributeError(op, {{"auto_pad", AttrValue::String("SAME_UPPER")}}, {"'auto_pad': expected", "got SAME_UPPER"});
}

}  // namespace
}  // namespace polyop::testing

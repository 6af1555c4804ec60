// SPDX-License-Identifier: Apache-2.0
// The kernel is that of modulated_deform_conv2d, which has the thorough test; this one tests the definition.
// tests/operators/test_onnx_deform_conv.py compares it with ONNX's own reference.
#include "ops/deform/onnx_deform_conv/onnx_deform_conv.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(const OnnxDeformConv& op, DType dtype, std::mt19937& rng) {
  const int64_t oh = (9 + op.pads[0] + op.pads[2] - op.dilations[0] * 2 - 1) / op.strides[0] + 1;
  const int64_t ow = (7 + op.pads[1] + op.pads[3] - op.dilations[1] - 1) / op.strides[1] + 1;
  return {HostTensor::Uniform(dtype, {2, 12, 9, 7}, rng), HostTensor::Uniform(dtype, {6, 12 / op.group, 3, 2}, rng),
          HostTensor::Uniform(dtype, {2, op.offset_group * 12, oh, ow}, rng, -3, 3),
          HostTensor::Uniform(dtype, {6}, rng), HostTensor::Uniform(dtype, {2, op.offset_group * 6, oh, ow}, rng)};
}

TEST(OnnxDeformConv, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (int64_t group : {1, 6}) {
      for (int left_out : {0, 1, 2, 3}) {
        const OnnxDeformConv op{{.dilations = {1, 2},
                                 .group = group,
                                 .kernel_shape = {3, 2},
                                 .offset_group = 3,
                                 .pads = {1, 0, 2, 3},
                                 .strides = {2, 1}}};
        std::vector<HostTensor> inputs = Inputs(op, dtype, rng);
        if ((left_out & 1) != 0) inputs[3] = HostTensor::Absent();
        if ((left_out & 2) != 0) inputs[4] = HostTensor::Absent();
        Tolerance tolerance = ToleranceFor(dtype);
        tolerance.absolute *= 10;  // sums of up to 72 products
        ExpectMatchesReference(op, inputs, tolerance);
      }
    }
  }
}

TEST(OnnxDeformConv, RejectsInvalidInputs) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = Inputs(OnnxDeformConv{}, DType::kF32, rng);
  ExpectError(OnnxDeformConv{{.kernel_shape = {3, 3}}}, inputs,
              {"'kernel_shape'[1]: expected the extent 2 of 'W', got 3"});
  inputs[4] = HostTensor::Full(DType::kF32, {2, 7, 7, 6}, 0);
  ExpectError(OnnxDeformConv{}, inputs, {"'mask'", "to be offset_group*KH*KW = 6"});
  const Op& op = *FindOp("onnx_deform_conv");
  ExpectAttributeError(op, {{"pads", AttrValue::Ints({1, 1})}}, {"'pads': expected 4 values, got 2"});
}

}  // namespace
}  // namespace polyop::testing

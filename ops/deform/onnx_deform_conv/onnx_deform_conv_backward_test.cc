// SPDX-License-Identifier: Apache-2.0
// The kernel is that of modulated_deform_conv2d_backward, which has the thorough test; this one tests the definition.
#include "ops/deform/onnx_deform_conv/onnx_deform_conv_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

OnnxDeformConvRule Rule(int64_t group) {
  return {.dilations = {1, 2},
          .group = group,
          .kernel_shape = {3, 2},
          .offset_group = 3,
          .pads = {1, 0, 2, 3},
          .strides = {2, 1}};
}

OnnxDeformConvBackward Gradient(const OnnxDeformConvRule& rule) {
  OnnxDeformConvBackward op;
  static_cast<OnnxDeformConvRule&>(op) = rule;
  return op;
}

std::vector<HostTensor> Inputs(const OnnxDeformConvRule& rule, DType dtype, std::mt19937& rng) {
  const int64_t oh = (9 + rule.pads[0] + rule.pads[2] - rule.dilations[0] * 2 - 1) / rule.strides[0] + 1;
  const int64_t ow = (7 + rule.pads[1] + rule.pads[3] - rule.dilations[1] - 1) / rule.strides[1] + 1;
  return {HostTensor::Uniform(dtype, {2, 6, oh, ow}, rng), HostTensor::Uniform(dtype, {2, 12, 9, 7}, rng),
          HostTensor::Uniform(dtype, {6, 12 / rule.group, 3, 2}, rng),
          HostTensor::Uniform(dtype, {2, rule.offset_group * 12, oh, ow}, rng, -3, 3),
          HostTensor::Uniform(dtype, {2, rule.offset_group * 6, oh, ow}, rng)};
}

TEST(OnnxDeformConvBackward, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (int64_t group : {1, 6}) {
      for (bool with_mask : {true, false}) {
        std::vector<HostTensor> inputs = Inputs(Rule(group), dtype, rng);
        if (!with_mask) inputs[4] = HostTensor::Absent();
        Tolerance tolerance = ToleranceFor(dtype);
        tolerance.absolute *= 10;  // sums of up to 100 products
        ExpectMatchesReference(Gradient(Rule(group)), inputs, tolerance);
      }
    }
  }
}

TEST(OnnxDeformConvBackward, ComputesThoseThatAreNeeded) {
  std::mt19937 rng(2);
  ExpectOnlyRequestedGradients(Gradient(Rule(1)), Inputs(Rule(1), DType::kF32, rng), 5);
}

// Without a mask, all gradients are those of a mask of ones, that of the mask included.
TEST(OnnxDeformConvBackward, MissingMaskIsOne) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = Inputs(Rule(6), DType::kF32, rng);
  std::vector<HostTensor> with_ones, without;
  inputs[4] = HostTensor::Full(DType::kF32, inputs[4].shape(), 1);
  ASSERT_TRUE(testing::Run(Gradient(Rule(6)), inputs, &with_ones).ok());
  inputs[4] = HostTensor::Absent();
  ASSERT_TRUE(testing::Run(Gradient(Rule(6)), inputs, &without).ok());
  ASSERT_EQ(with_ones.size(), without.size());
  for (size_t g = 0; g < without.size(); ++g) {
    for (int64_t i = 0; i < without[g].size(); ++i) ASSERT_EQ(without[g].at(i), with_ones[g].at(i)) << g << ", " << i;
  }
}

// The reference kernel's gradients, compared with the reference kernel of the forward pass.
TEST(OnnxDeformConvBackward, EqualsFiniteDifferences) {
  std::mt19937 rng(4);
  const std::vector<HostTensor> inputs = Inputs(Rule(2), DType::kF64, rng);
  const OnnxDeformConvBackward op = Gradient(Rule(2));
  const OnnxDeformConv forward{Rule(2)};
  std::vector<HostTensor> grads;
  ASSERT_TRUE(RunReference(*FindOp(op.kName), &op, inputs, &grads).ok());
  ASSERT_EQ(grads.size(), 5u);
  const std::vector<HostTensor> given = {inputs[1], inputs[2], inputs[3], HostTensor::Uniform(DType::kF64, {6}, rng),
                                         inputs[4]};                 // those of the operator
  const auto product = [&](size_t tensor, int64_t i, double step) {  // of gradients and outputs
    std::vector<HostTensor> moved = given, output;
    moved[tensor].set(i, moved[tensor].at(i) + step);
    EXPECT_TRUE(RunReference(*FindOp(forward.kName), &forward, moved, &output).ok());
    return InnerProduct(output[0], inputs[0]);
  };
  for (size_t tensor = 0; tensor < given.size(); ++tensor) {
    ASSERT_EQ(grads[tensor].size(), given[tensor].size());
    for (int64_t i = 0; i < grads[tensor].size(); i += tensor == 3 ? 1 : 23) {
      const double slope = (product(tensor, i, 1e-6) - product(tensor, i, -1e-6)) / 2e-6;
      EXPECT_NEAR(grads[tensor].at(i), slope, 1e-6) << "input " << tensor << ", element " << i;
    }
  }
}

TEST(OnnxDeformConvBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  const std::vector<HostTensor> good = Inputs(OnnxDeformConvRule{}, DType::kF32, rng);
  OnnxDeformConvRule square;
  square.kernel_shape = {3, 3};
  ExpectError(Gradient(square), good, {"'kernel_shape'[1]: expected the extent 2 of 'W', got 3"});
  OnnxDeformConvRule five;
  five.offset_group = 5;
  std::vector<HostTensor> inputs = Inputs(five, DType::kF32, rng);
  ExpectError(Gradient(five), inputs, {"'X': expected channels divisible by group = 1 and by offset_group = 5"});
  inputs = good;
  inputs[0] = HostTensor::Full(DType::kF32, {2, 6, 6, 6}, 0);
  ExpectError(OnnxDeformConvBackward{}, inputs, {"OH"});
  inputs = good;
  inputs[4] = HostTensor::Full(DType::kF32, {2, 7, 7, 6}, 0);
  ExpectError(OnnxDeformConvBackward{}, inputs, {"'mask'", "to be offset_group*KH*KW = 6"});
}

}  // namespace
}  // namespace polyop::testing

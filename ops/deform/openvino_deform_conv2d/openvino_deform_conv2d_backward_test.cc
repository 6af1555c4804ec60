// SPDX-License-Identifier: Apache-2.0
// The kernel is that of modulated_deform_conv2d_backward, which has the thorough test; this one tests the definition.
#include "ops/deform/openvino_deform_conv2d/openvino_deform_conv2d_backward.h"

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

OpenvinoDeformConv2dBackward Gradient(int64_t step, int64_t group) {
  OpenvinoDeformConv2dBackward op;
  op.strides = {step, 1};
  op.pads = {1, 0, 2, 3};
  op.dilations = {1, step};
  op.group = group;
  op.deformable_groups = 3;
  return op;
}

std::vector<HostTensor> Inputs(const OpenvinoDeformConv2d& op, DType dtype, std::mt19937& rng) {
  const int64_t oh = (9 + op.pads[0] + op.pads[2] - op.dilations[0] * 2 - 1) / op.strides[0] + 1;
  const int64_t ow = (7 + op.pads[1] + op.pads[3] - op.dilations[1] - 1) / op.strides[1] + 1;
  return {HostTensor::Uniform(dtype, {2, 6, oh, ow}, rng), HostTensor::Uniform(dtype, {2, 12, 9, 7}, rng),
          HostTensor::Uniform(dtype, {2, op.deformable_groups * 12, oh, ow}, rng, -3, 3),
          HostTensor::Uniform(dtype, {6, 12 / op.group, 3, 2}, rng)};
}

TEST(OpenvinoDeformConv2dBackward, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (int64_t group : {1, 6}) {
      const OpenvinoDeformConv2dBackward op = Gradient(group == 1 ? 1 : 2, group);
      Tolerance tolerance = ToleranceFor(dtype);
      tolerance.absolute *= 10;  // sums of up to 200 products
      ExpectMatchesReference(op, Inputs(op, dtype, rng), tolerance);
    }
  }
}

TEST(OpenvinoDeformConv2dBackward, ComputesThoseThatAreNeeded) {
  std::mt19937 rng(2);
  const OpenvinoDeformConv2dBackward op = Gradient(2, 1);
  ExpectOnlyRequestedGradients(op, Inputs(op, DType::kF32, rng), 3);
}

// The reference kernel's gradients, compared with the reference kernel of the forward pass.
TEST(OpenvinoDeformConv2dBackward, EqualsFiniteDifferences) {
  std::mt19937 rng(3);
  const OpenvinoDeformConv2dBackward op = Gradient(2, 2);
  const OpenvinoDeformConv2d& forward = op;
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF64, rng);
  std::vector<HostTensor> grads;
  ASSERT_TRUE(RunReference(*FindOp(op.kName), &op, inputs, &grads).ok());
  ASSERT_EQ(grads.size(), 3u);
  const auto product = [&](size_t tensor, int64_t i, double step) {  // of gradients and outputs
    std::vector<HostTensor> moved = {inputs[1], inputs[2], inputs[3]}, output;
    moved[tensor].set(i, moved[tensor].at(i) + step);
    EXPECT_TRUE(RunReference(*FindOp(OpenvinoDeformConv2d::kName), &forward, moved, &output).ok());
    return InnerProduct(output[0], inputs[0]);
  };
  for (size_t tensor = 0; tensor < 3; ++tensor) {
    ASSERT_EQ(grads[tensor].size(), inputs[tensor + 1].size());
    for (int64_t i = 0; i < grads[tensor].size(); i += 23) {
      const double slope = (product(tensor, i, 1e-6) - product(tensor, i, -1e-6)) / 2e-6;
      EXPECT_NEAR(grads[tensor].at(i), slope, 1e-6) << "input " << tensor << ", element " << i;
    }
  }
}

TEST(OpenvinoDeformConv2dBackward, RejectsInvalidInputs) {
  std::mt19937 rng(4);
  OpenvinoDeformConv2dBackward op;
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, rng);
  inputs[2] = HostTensor::Full(DType::kF32, {2, 13, 7, 6}, 0);
  ExpectError(op, inputs, {"'offset'", "to be 2*deformable_groups*KH*KW = 12"});
  op.deformable_groups = 5;
  ExpectError(op, Inputs(op, DType::kF32, rng),
              {"'input': expected channels divisible by group = 1 and by deformable_groups = 5"});
}

}  // namespace
}  // namespace polyop::testing

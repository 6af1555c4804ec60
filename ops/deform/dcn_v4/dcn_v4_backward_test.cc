// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/dcn_v4/dcn_v4_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

DcnV4Backward Op(const DcnWindowRule& rule) {
  DcnV4Backward op;
  static_cast<DcnWindowRule&>(op) = rule;
  return op;
}

std::vector<HostTensor> Inputs(const DcnV4Backward& op, DType dtype, std::mt19937& rng, int64_t padding = 0,
                               int64_t batch = 2) {
  const int64_t oh = (8 + 2 * op.pad_h - op.dilation_h * (op.kernel_h - 1) - 1) / op.stride_h + 1;
  const int64_t ow = (7 + 2 * op.pad_w - op.dilation_w * (op.kernel_w - 1) - 1) / op.stride_w + 1;
  const int64_t row = (3 * op.group * op.points() + 7) / 8 * 8 + padding, channels = op.group * op.group_channels;
  return {HostTensor::Uniform(dtype, {batch, oh, ow, channels}, rng),
          HostTensor::Uniform(dtype, {batch, 8, 7, channels}, rng),
          HostTensor::Uniform(dtype, {batch, oh, ow, row}, rng, -1.5, 1.5)};
}

TEST(DcnV4Backward, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Tolerance tolerance = ToleranceFor(dtype);
    tolerance.absolute *= 10;  // sums of up to some dozen products with fp32 coordinates
    for (int64_t depth : {1, 7, 16, 24}) {
      for (const DcnV4Backward& op : {
               Op({.group = 4, .group_channels = depth}),
               Op({.group = 3, .group_channels = depth, .offset_scale = 0.5f, .remove_center = 1}),
               Op({.kernel_h = 1,
                   .kernel_w = 4,
                   .stride_h = 2,
                   .pad_h = 2,
                   .pad_w = 0,
                   .dilation_w = 2,
                   .group = 2,
                   .group_channels = depth}),
           }) {
        ExpectMatchesReference(op, Inputs(op, dtype, rng), tolerance);
        ExpectMatchesReference(op, Inputs(op, dtype, rng, 5, 3), tolerance);
      }
    }
  }
}

TEST(DcnV4Backward, PaddingHasNoGradient) {
  std::mt19937 rng(2);
  const DcnV4Backward op = Op({.group = 1, .group_channels = 4});
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, rng, 3);  // 27 values of 35
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[1].size(); ++i) {
    if (i % 35 < 27) continue;
    EXPECT_EQ(grads[1].at(i), 0) << i;
  }
}

// The sums are linear in the input.
TEST(DcnV4Backward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(3);
  const DcnV4Backward op = Op({.group = 3, .group_channels = 20, .offset_scale = 1.5f});
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(static_cast<const DcnV4&>(op), {inputs[1], inputs[2]}, &output).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < output[0].size(); ++i) left += output[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grads[0].size(); ++i) right += grads[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-3);
}

TEST(DcnV4Backward, ComputesThoseThatAreNeeded) {
  std::mt19937 rng(4);
  DcnV4Backward op = Op({.group = 2, .group_channels = 5});
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, rng);
  std::vector<HostTensor> all, some;
  ASSERT_TRUE(testing::Run(op, inputs, &all).ok());
  for (int64_t o = 0; o < 2; ++o) {
    op.output_mask = 1 << o;
    ASSERT_TRUE(testing::Run(op, inputs, &some).ok());
    EXPECT_TRUE(some[o].SameBytes(all[o])) << o;
  }
}

TEST(DcnV4Backward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(5);
  const DcnV4Backward op = Op({.kernel_h = 1, .kernel_w = 1, .pad_h = 0, .pad_w = 0, .group = 2, .group_channels = 3});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, rng);
  inputs[2] = HostTensor::Full(DType::kF32, inputs[2].shape(), 0);
  for (int64_t i = 0; i < inputs[2].size(); i += 8) {
    inputs[2].set(i + 2, 1);  // masks
    inputs[2].set(i + 5, 1);
  }
  inputs[0].set(10 * 6 + 4, NAN);  // pixel 10 of image 0, group 1
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 10 * 6 + 4) << i;
  for (int64_t i = 0; i < grads[1].size(); ++i) {
    EXPECT_EQ(std::isnan(grads[1].at(i)), i / 8 == 10 && i % 8 >= 3 && i % 8 < 6) << i;
  }
}

// The reference kernel's gradients, compared with the reference kernel of the forward pass.
TEST(DcnV4Backward, EqualsFiniteDifferences) {
  std::mt19937 rng(8);
  const DcnV4Backward op = Op({.group = 2, .group_channels = 3, .offset_scale = 0.7f, .remove_center = 1});
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF64, rng, 0, 1);
  std::vector<HostTensor> grads;
  ASSERT_TRUE(RunReference(*FindOp(op.kName), &op, inputs, &grads).ok());
  const auto product = [&](size_t tensor, int64_t i, double step) {  // of gradients and outputs
    std::vector<HostTensor> moved = {inputs[1], inputs[2]}, output;
    moved[tensor].set(i, moved[tensor].at(i) + step);
    EXPECT_TRUE(RunReference(*FindOp("dcn_v4"), static_cast<const DcnV4*>(&op), moved, &output).ok());
    double sum = 0;
    for (int64_t o = 0; o < output[0].size(); ++o) sum += output[0].at(o) * inputs[0].at(o);
    return sum;
  };
  for (size_t tensor = 0; tensor < 2; ++tensor) {
    for (int64_t i = 0; i < grads[tensor].size(); i += 11) {
      const double slope = (product(tensor, i, 1e-6) - product(tensor, i, -1e-6)) / 2e-6;
      EXPECT_NEAR(grads[tensor].at(i), slope, 1e-6) << "input " << tensor << ", element " << i;
    }
  }
}

TEST(DcnV4Backward, EmptyInputs) {
  std::mt19937 rng(6);
  const DcnV4Backward op = Op({.group = 2, .group_channels = 4});
  ExpectMatchesReference(op, Inputs(op, DType::kF32, rng, 0, 0));
  ExpectMatchesReference(
      Op({.pad_h = 2, .group = 1, .group_channels = 4}),
      {HostTensor::Uniform(DType::kF32, {1, 2, 3, 4}, rng), HostTensor::Uniform(DType::kF32, {1, 0, 3, 4}, rng),
       HostTensor::Uniform(DType::kF32, {1, 2, 3, 32}, rng)});
}

TEST(DcnV4Backward, RejectsInvalidInputs) {
  std::mt19937 rng(7);
  const DcnV4Backward op = Op({.group = 3, .group_channels = 4});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, rng);
  inputs[2] = HostTensor::Full(DType::kF32, {2, 8, 7, 81}, 0);  // all offsets and masks, without padding
  ExpectError(op, inputs,
              {"'offset_mask': expected at least", "= 88 in dimension 3 for 9 points, got 81 (shape [2, 8, 7, 81])"});
  inputs[2] = HostTensor::Full(DType::kF32, {2, 8, 6, 88}, 0);
  ExpectError(op, inputs, {"'offset_mask'", "expected dimension 2", "got 6"});
  inputs = Inputs(op, DType::kF32, rng);
  inputs[0] = HostTensor::Full(DType::kF32, {2, 8, 7, 11}, 0);
  ExpectError(op, inputs, {"'grad_output'", "group*group_channels = 12", "got 11"});
}

}  // namespace
}  // namespace polyop::testing

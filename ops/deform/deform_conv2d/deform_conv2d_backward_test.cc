// SPDX-License-Identifier: Apache-2.0
// The kernel is shared with modulated_deform_conv2d_backward, which tests it in detail; this file tests the definition.
#include "ops/deform/deform_conv2d/deform_conv2d_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

DeformConv2dBackward Op(const DeformConvRule& rule) {
  DeformConv2dBackward op;
  static_cast<DeformConvRule&>(op) = rule;
  return op;
}

std::vector<HostTensor> Inputs(const DeformConv2dBackward& op, DType dtype, std::mt19937& rng) {
  const int64_t oh = (9 + 2 * op.padding[0] - op.dilation[0] * 2 - 1) / op.stride[0] + 1;
  const int64_t ow = (7 + 2 * op.padding[1] - op.dilation[1] - 1) / op.stride[1] + 1;
  return {HostTensor::Uniform(dtype, {2, 6, oh, ow}, rng), HostTensor::Uniform(dtype, {2, 12, 9, 7}, rng),
          HostTensor::Uniform(dtype, {2, op.deform_groups * 12, oh, ow}, rng, -3, 3),
          HostTensor::Uniform(dtype, {6, 12 / op.groups, 3, 2}, rng)};
}

TEST(DeformConv2dBackward, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (int64_t groups : {1, 2, 6}) {
      for (int64_t deform_groups : {1, 3, 12}) {
        for (int64_t step : {1, 2}) {
          const DeformConv2dBackward op = Op({.stride = {step, 1},
                                              .padding = {1, 2},
                                              .dilation = {1, step},
                                              .groups = groups,
                                              .deform_groups = deform_groups});
          Tolerance tolerance = ToleranceFor(dtype);
          tolerance.absolute *= 20;  // sums of some hundred products
          ExpectMatchesReference(op, Inputs(op, dtype, rng), tolerance);
        }
      }
    }
  }
}

TEST(DeformConv2dBackward, EmptyInputs) {
  const DeformConv2dBackward op = Op({.padding = {1, 1}});
  std::mt19937 rng(2);
  const auto with = [&](int64_t batch, int64_t filters) -> std::vector<HostTensor> {
    return {HostTensor::Uniform(DType::kF32, {batch, filters, 9, 8}, rng),
            HostTensor::Uniform(DType::kF32, {batch, 3, 9, 7}, rng),
            HostTensor::Uniform(DType::kF32, {batch, 12, 9, 8}, rng),
            HostTensor::Uniform(DType::kF32, {filters, 3, 3, 2}, rng)};
  };
  ExpectMatchesReference(op, with(0, 4));
  ExpectMatchesReference(op, with(2, 0));
}

TEST(DeformConv2dBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(3);
  const DeformConv2dBackward op = Op({});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, rng);
  inputs[2] = HostTensor::Full(DType::kF32, inputs[2].shape(), 0);
  inputs[0].set(0, NAN);  // image 0, filter 0, pixel (0, 0)
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) {
    const bool touched = i < 12 * 63 && i / 7 % 9 < 3 && i % 7 < 2;
    EXPECT_EQ(std::isnan(grads[0].at(i)), touched) << i;
  }
  for (int64_t i = 0; i < grads[1].size(); ++i) EXPECT_EQ(std::isnan(grads[1].at(i)), i < 12 * 42 && i % 42 == 0) << i;
  for (int64_t i = 0; i < grads[2].size(); ++i) EXPECT_EQ(std::isnan(grads[2].at(i)), i < 72) << i;
}

TEST(DeformConv2dBackward, RejectsInvalidInputs) {
  std::mt19937 rng(4);
  const DeformConv2dBackward op = Op({});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, rng);
  inputs[2] = HostTensor::Full(DType::kF32, {2, 13, 7, 6}, 0);
  ExpectError(op, inputs, {"'offset'", "to be 2*deform_groups*KH*KW = 12"});
  inputs = Inputs(op, DType::kF32, rng);
  ExpectError(Op({.deform_groups = 5}),
              {inputs[0], inputs[1], HostTensor::Full(DType::kF32, {2, 60, 7, 6}, 0), inputs[3]},
              {"'input': expected channels divisible by", "deform_groups = 5"});
}

}  // namespace
}  // namespace polyop::testing

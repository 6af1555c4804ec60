// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/dcn_v3/dcn_v3_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

DcnV3Backward Op(const DcnWindowRule& rule) {
  DcnV3Backward op;
  static_cast<DcnWindowRule&>(op) = rule;
  return op;
}

std::vector<HostTensor> Inputs(const DcnV3Backward& op, DType dtype, const Shape& image, std::mt19937& rng) {
  const int64_t oh = (image[1] + 2 * op.pad_h - op.dilation_h * (op.kernel_h - 1) - 1) / op.stride_h + 1;
  const int64_t ow = (image[2] + 2 * op.pad_w - op.dilation_w * (op.kernel_w - 1) - 1) / op.stride_w + 1;
  const int64_t samples = op.group * op.points(), channels = op.group * op.group_channels;
  return {HostTensor::Uniform(dtype, {image[0], oh, ow, channels}, rng),
          HostTensor::Uniform(dtype, {image[0], image[1], image[2], channels}, rng),
          HostTensor::Uniform(dtype, {image[0], oh, ow, 2 * samples}, rng, -2, 2),
          HostTensor::Uniform(dtype, {image[0], oh, ow, samples}, rng, 0, 1)};
}

TEST(DcnV3Backward, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Tolerance tolerance = ToleranceFor(dtype);
    tolerance.absolute *= 10;  // sums of up to some dozen products with fp32 coordinates
    for (int64_t depth : {3, 16, 33}) {
      for (const DcnV3Backward& op : {
               Op({.group = 2, .group_channels = depth}),
               Op({.group = 3, .group_channels = depth, .offset_scale = 0.7f, .remove_center = 1}),
               Op({.kernel_h = 3,
                   .kernel_w = 2,
                   .stride_h = 2,
                   .pad_h = 0,
                   .pad_w = 3,
                   .dilation_w = 3,
                   .group = 1,
                   .group_channels = depth,
                   .offset_scale = 1.5f}),
               Op({.kernel_h = 5,
                   .kernel_w = 5,
                   .stride_w = 3,
                   .pad_h = 2,
                   .pad_w = 0,
                   .dilation_h = 2,
                   .group = 2,
                   .group_channels = depth,
                   .offset_scale = -0.5f,
                   .remove_center = 1}),
           }) {
        ExpectMatchesReference(op, Inputs(op, dtype, {2, 8, 7}, rng), tolerance);
      }
    }
  }
}

TEST(DcnV3Backward, IntegerOffsets) {
  std::mt19937 rng(2);
  const DcnV3Backward op = Op({.group = 2, .group_channels = 5});
  for (double offset : {0.0, 1.0, -2.0}) {
    std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 5, 6}, rng);
    inputs[2] = HostTensor::Full(DType::kF32, inputs[2].shape(), offset);
    ExpectMatchesReference(op, inputs, {.relative = 1e-5, .absolute = 1e-4});
  }
}

TEST(DcnV3Backward, NonFiniteOffsetsHaveNoGradient) {
  std::mt19937 rng(3);
  const DcnV3Backward op = Op({.group = 2, .group_channels = 5});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 5, 6}, rng);
  for (int64_t i = 0; i < inputs[2].size(); i += 5) inputs[2].set(i, i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : 1e30);
  ExpectMatchesReference(op, inputs, {.relative = 1e-5, .absolute = 1e-4});
}

TEST(DcnV3Backward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  const DcnV3Backward op = Op({.group = 2, .group_channels = 3});
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 7, 7}, rng);
  inputs[2] = HostTensor::Full(DType::kF32, inputs[2].shape(), 0);
  inputs[0].set((2 * 7 + 4) * 6 + 5, NAN);  // image 0, pixel (2, 4), channel 2 of group 1
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) {
    const int64_t y = i / 6 / 7, x = i / 6 % 7;
    EXPECT_EQ(std::isnan(grads[0].at(i)), i % 6 == 5 && std::abs(y - 2) <= 1 && std::abs(x - 4) <= 1) << i;
  }
  const auto touched = [](int64_t pair) { return pair == (2 * 7 + 4) * 2 + 1; };
  for (int64_t i = 0; i < grads[1].size(); ++i) EXPECT_EQ(std::isnan(grads[1].at(i)), touched(i / 18)) << i;
  for (int64_t i = 0; i < grads[2].size(); ++i) EXPECT_EQ(std::isnan(grads[2].at(i)), touched(i / 9)) << i;
}

TEST(DcnV3Backward, EmptyInputs) {
  std::mt19937 rng(5);
  const DcnV3Backward op = Op({.group = 2, .group_channels = 4});
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {0, 5, 6}, rng));
  ExpectMatchesReference(Op({.pad_h = 2, .group = 1, .group_channels = 4}),
                         Inputs(Op({.pad_h = 2, .group = 1, .group_channels = 4}), DType::kF32, {1, 0, 3}, rng));
}

TEST(DcnV3Backward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const DcnV3Backward op = Op({.group = 3, .group_channels = 4});
  const std::vector<HostTensor> good = Inputs(op, DType::kF32, {2, 8, 7}, rng);
  const auto with = [&](size_t i, const Shape& shape) {
    std::vector<HostTensor> inputs = good;
    inputs[i] = HostTensor::Full(DType::kF32, shape, 0);
    return inputs;
  };
  ExpectError(op, with(0, {2, 8, 7, 11}), {"'grad_output'", "group*group_channels = 12", "got 11"});
  ExpectError(op, with(2, {2, 8, 7, 53}), {"'offset'", "= 54", "got 53"});
  ExpectError(op, with(3, {2, 8, 6, 27}), {"'mask'", "OW = 7", "got 6"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
// The kernel is shared with dcn_v3, which tests it in detail; this file tests the layout of offsets and masks.
#include "ops/deform/dcn_v4/dcn_v4.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(const DcnV4& op, DType dtype, std::mt19937& rng, int64_t padding = 0) {
  const int64_t oh = (8 + 2 * op.pad_h - op.dilation_h * (op.kernel_h - 1) - 1) / op.stride_h + 1;
  const int64_t ow = (7 + 2 * op.pad_w - op.dilation_w * (op.kernel_w - 1) - 1) / op.stride_w + 1;
  const int64_t row = (3 * op.group * op.points() + 7) / 8 * 8 + padding;
  return {HostTensor::Uniform(dtype, {2, 8, 7, op.group * op.group_channels}, rng),
          HostTensor::Uniform(dtype, {2, oh, ow, row}, rng, -1.5, 1.5)};
}

TEST(DcnV4, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Tolerance tolerance = ToleranceFor(dtype);
    tolerance.absolute *= 10;  // sums of up to 9 samples with fp32 coordinates
    for (int64_t depth : {1, 7, 16, 24}) {
      for (const DcnV4& op : {
               DcnV4{{.group = 4, .group_channels = depth}},
               DcnV4{{.group = 3, .group_channels = depth, .offset_scale = 0.5f, .remove_center = 1}},
               DcnV4{{.kernel_h = 1,
                      .kernel_w = 4,
                      .stride_h = 2,
                      .pad_h = 2,
                      .pad_w = 0,
                      .dilation_w = 2,
                      .group = 2,
                      .group_channels = depth}},
           }) {
        ExpectMatchesReference(op, Inputs(op, dtype, rng), tolerance);
        ExpectMatchesReference(op, Inputs(op, dtype, rng, 5), tolerance);
      }
    }
  }
}

// A row holds each group's offsets (x before y), followed by its masks.
TEST(DcnV4, RowLayout) {
  std::mt19937 rng(2);
  const DcnV4 op{{.kernel_h = 1, .kernel_w = 2, .pad_h = 0, .pad_w = 0, .group = 2, .group_channels = 1}};
  const HostTensor input = HostTensor::Uniform(DType::kF32, {1, 4, 4, 2}, rng);
  HostTensor row = HostTensor::Full(DType::kF32, {1, 4, 3, 16}, 0);
  // At pixel (1, 0), group 0 selects its second point, one column to the right; group 1 its first, two rows down.
  const int64_t at = 3 * 16;
  row.set(at + 2, 1);
  row.set(at + 5, 10);
  row.set(at + 7, 2);
  row.set(at + 10, 100);
  for (int64_t i = 12; i < 16; ++i) row.set(at + i, 1e6);  // padding
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(op, {input, row}, &out).ok());
  EXPECT_FLOAT_EQ(static_cast<float>(out[0].at(3 * 2)), 10 * static_cast<float>(input.at((1 * 4 + 2) * 2)));
  EXPECT_FLOAT_EQ(static_cast<float>(out[0].at(3 * 2 + 1)), 100 * static_cast<float>(input.at((3 * 4 + 0) * 2 + 1)));
  EXPECT_EQ(out[0].at(0), 0);
}

TEST(DcnV4, RejectsInvalidInputs) {
  std::mt19937 rng(3);
  const DcnV4 op{{.group = 3, .group_channels = 4}};
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, rng);
  inputs[1] = HostTensor::Full(DType::kF32, {2, 8, 7, 81}, 0);  // all offsets and masks, without padding
  ExpectError(op, inputs,
              {"'offset_mask': expected at least", "= 88 in dimension 3 for 9 points, got 81 (shape [2, 8, 7, 81])"});
  inputs[1] = HostTensor::Full(DType::kF32, {2, 8, 6, 88}, 0);
  ExpectError(op, inputs, {"'offset_mask'", "expected dimension 2", "got 6"});
}

}  // namespace
}  // namespace polyop::testing

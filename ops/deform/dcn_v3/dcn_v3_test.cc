// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/dcn_v3/dcn_v3.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(const DcnV3& op, DType dtype, const Shape& image, std::mt19937& rng) {
  const int64_t oh = (image[1] + 2 * op.pad_h - op.dilation_h * (op.kernel_h - 1) - 1) / op.stride_h + 1;
  const int64_t ow = (image[2] + 2 * op.pad_w - op.dilation_w * (op.kernel_w - 1) - 1) / op.stride_w + 1;
  const int64_t samples = op.group * op.points();
  return {HostTensor::Uniform(dtype, {image[0], image[1], image[2], op.group * op.group_channels}, rng),
          HostTensor::Uniform(dtype, {image[0], oh, ow, 2 * samples}, rng, -2, 2),
          HostTensor::Uniform(dtype, {image[0], oh, ow, samples}, rng, 0, 1)};
}

class DcnV3Test : public ::testing::TestWithParam<DType> {};

TEST_P(DcnV3Test, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of up to 25 samples with fp32 coordinates
  for (int64_t depth : {3, 16, 33}) {
    for (const DcnV3& op : {
             DcnV3{{.group = 2, .group_channels = depth}},
             DcnV3{{.group = 3, .group_channels = depth, .offset_scale = 0.7f, .remove_center = 1}},
             DcnV3{{.kernel_h = 3,
                    .kernel_w = 2,
                    .stride_h = 2,
                    .pad_h = 0,
                    .pad_w = 3,
                    .dilation_w = 3,
                    .group = 1,
                    .group_channels = depth,
                    .offset_scale = 1.5f}},
             DcnV3{{.kernel_h = 5,
                    .kernel_w = 5,
                    .stride_w = 3,
                    .pad_h = 2,
                    .pad_w = 0,
                    .dilation_h = 2,
                    .group = 2,
                    .group_channels = depth,
                    .offset_scale = -0.5f,
                    .remove_center = 1}},
         }) {
      ExpectMatchesReference(op, Inputs(op, GetParam(), {2, 8, 7}, rng), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DcnV3Test, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Without offsets and with a mask that selects one point, the output is the image shifted to that point.
TEST(DcnV3, PointsAreNumberedColumnByColumn) {
  std::mt19937 rng(2);
  for (const DcnV3& op : {DcnV3{{.kernel_h = 3,
                                 .kernel_w = 2,
                                 .stride_h = 2,
                                 .pad_h = 1,
                                 .pad_w = 2,
                                 .dilation_h = 1,
                                 .dilation_w = 2,
                                 .group = 1,
                                 .group_channels = 1}},
                          DcnV3{{.group = 1, .group_channels = 1, .remove_center = 1}}}) {
    std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 7, 6}, rng), out;
    for (int64_t i = 0; i < inputs[1].size(); ++i) inputs[1].set(i, 0);
    int64_t p = 0;
    for (int64_t kx = 0; kx < op.kernel_w; ++kx) {
      for (int64_t ky = 0; ky < op.kernel_h; ++ky) {
        if (op.remove_center && kx == 1 && ky == 1) continue;
        for (int64_t i = 0; i < inputs[2].size(); ++i) inputs[2].set(i, i % op.points() == p);
        ++p;
        ASSERT_TRUE(testing::Run(op, inputs, &out).ok());
        const int64_t columns = out[0].shape()[2];
        for (int64_t i = 0; i < out[0].size(); ++i) {
          const int64_t y = i / columns * op.stride_h - op.pad_h + ky * op.dilation_h;
          const int64_t x = i % columns * op.stride_w - op.pad_w + kx * op.dilation_w;
          const bool inside = y >= 0 && y < 7 && x >= 0 && x < 6;
          EXPECT_EQ(out[0].at(i), inside ? inputs[0].at(y * 6 + x) : 0) << "point " << p << " output " << i;
        }
      }
    }
    EXPECT_EQ(p, op.points());
  }
}

TEST(DcnV3, NonFiniteOffsetsSampleNothing) {
  std::mt19937 rng(3);
  const DcnV3 op{{.group = 2, .group_channels = 5}};
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 5, 6}, rng);
  for (int64_t i = 0; i < inputs[1].size(); i += 5) inputs[1].set(i, i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : 1e30);
  ExpectMatchesReference(op, inputs, {.relative = 1e-5, .absolute = 1e-4});
}

TEST(DcnV3, EmptyInputs) {
  std::mt19937 rng(4);
  const DcnV3 op{{.group = 2, .group_channels = 4}};
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {0, 5, 6}, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {2, 0, 6}, rng));
  const DcnV3 only_padding{{.kernel_h = 1, .group = 2, .group_channels = 4}};  // two rows of output from an empty input
  ExpectMatchesReference(only_padding, Inputs(only_padding, DType::kF32, {2, 0, 6}, rng));
  const DcnV3 no_points{
      {.kernel_h = 1, .kernel_w = 1, .pad_h = 0, .pad_w = 0, .group = 1, .group_channels = 3, .remove_center = 1}};
  ExpectMatchesReference(no_points, Inputs(no_points, DType::kF32, {1, 2, 2}, rng));
}

TEST(DcnV3, SameAtAnyAlignment) {
  std::mt19937 rng(5);
  const DcnV3 op{{.group = 4, .group_channels = 16}};
  ExpectSameAtAnyAlignment(op, Inputs(op, DType::kF32, {1, 14, 13}, rng));
}

TEST(DcnV3, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const DcnV3 op{{.group = 2, .group_channels = 4}};
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 5, 6}, rng);
  inputs[1] = HostTensor::Full(DType::kF32, {1, 5, 6, 32}, 0);
  ExpectError(op, inputs, {"'offset'", "expected dimension 3", "got 32"});
  inputs = Inputs(op, DType::kF32, {1, 5, 6}, rng);
  inputs[0] = HostTensor::Full(DType::kF32, {1, 5, 6, 9}, 0);
  ExpectError(op, inputs, {"'input'", "to be group*group_channels = 8"});
  const std::vector<std::pair<std::string, AttrValue>> groups = {{"group", AttrValue::Int(1)},
                                                                 {"group_channels", AttrValue::Int(1)}};
  auto even = groups;
  even.insert(even.end(),
              {{"kernel_h", AttrValue::Int(2)}, {"kernel_w", AttrValue::Int(2)}, {"remove_center", AttrValue::Int(1)}});
  ExpectAttributeError(*FindOp("dcn_v3"), even, {"'remove_center': expected a square kernel of odd size, got 2 x 2"});
  ExpectAttributeError(*FindOp("dcn_v3"), {{"group_channels", AttrValue::Int(1)}}, {"'group'"});
}

}  // namespace
}  // namespace polyop::testing

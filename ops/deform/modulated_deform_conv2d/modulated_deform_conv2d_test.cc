// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/modulated_deform_conv2d/modulated_deform_conv2d.h"

#include <cmath>

#include "testing/library_products.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Case {
  int64_t batch, channels, height, width, filters, kh, kw;
  ModulatedDeformConv2d op;
};

std::vector<HostTensor> Inputs(const Case& c, DType dtype, std::mt19937& rng, bool bias) {
  const auto extent = [](int64_t in, int64_t pad, int64_t dilation, int64_t kernel, int64_t stride) {
    return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  };
  const int64_t oh = extent(c.height, c.op.padding[0], c.op.dilation[0], c.kh, c.op.stride[0]);
  const int64_t ow = extent(c.width, c.op.padding[1], c.op.dilation[1], c.kw, c.op.stride[1]);
  const int64_t points = c.op.deform_groups * c.kh * c.kw;
  return {HostTensor::Uniform(dtype, {c.batch, c.channels, c.height, c.width}, rng),
          HostTensor::Uniform(dtype, {c.batch, 2 * points, oh, ow}, rng, -3, 3),
          HostTensor::Uniform(dtype, {c.batch, points, oh, ow}, rng, 0, 1),
          HostTensor::Uniform(dtype, {c.filters, c.channels / c.op.groups, c.kh, c.kw}, rng),
          bias ? HostTensor::Uniform(dtype, {c.filters}, rng) : HostTensor::Absent()};
}

// The error of sums of C / groups * KH * KW products of values below 1; positions are rounded to float.
Tolerance SumTolerance(DType dtype, const Case& c) {
  const double terms = static_cast<double>(c.channels / c.op.groups * c.kh * c.kw);
  const Tolerance one = ToleranceFor(dtype);
  return {one.relative, one.absolute * (dtype == DType::kF32 ? std::sqrt(terms) * 2 : 2)};
}

const Case kCases[] = {
    {1, 1, 5, 5, 1, 1, 1, {}},
    {2, 3, 7, 9, 5, 3, 3, {{.padding = {1, 1}}}},
    {1, 16, 6, 6, 8, 3, 3, {{.padding = {1, 1}}}},
    {1, 17, 8, 5, 70, 3, 2, {{.stride = {2, 1}, .padding = {0, 2}, .dilation = {1, 2}}}},
    {2,
     8,
     9,
     7,
     12,
     3,
     3,
     {{.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 1}, .groups = 4, .deform_groups = 2}}},
    {1, 12, 6, 7, 6, 2, 3, {{.padding = {1, 1}, .groups = 2, .deform_groups = 3}}},    // deform groups straddle groups
    {1, 10, 6, 6, 10, 3, 3, {{.padding = {1, 1}, .groups = 10, .deform_groups = 2}}},  // depthwise
    {1, 9, 6, 6, 18, 3, 3, {{.padding = {1, 1}, .groups = 9, .deform_groups = 9}}},    // depthwise with a multiplier
    {1, 64, 11, 13, 96, 3, 3, {{.padding = {1, 1}, .deform_groups = 4}}},
    {1, 35, 9, 8, 150, 3, 2, {{.padding = {1, 1}}}},  // several tiles of filters and pixels, the last ones partial
    {2, 36, 8, 9, 80, 2, 2, {{.groups = 2, .deform_groups = 3}}},
};

class ModulatedDeformConv2dTest : public ::testing::TestWithParam<DType> {};

TEST_P(ModulatedDeformConv2dTest, MatchesReference) {
  std::mt19937 rng(1);
  bool bias = false;
  for (const Case& c : kCases) {
    bias = !bias;
    SCOPED_TRACE(std::to_string(c.channels) + " channels, groups " + std::to_string(c.op.groups) + ", deform groups " +
                 std::to_string(c.op.deform_groups));
    ExpectMatchesReference(c.op, Inputs(c, GetParam(), rng, bias), SumTolerance(GetParam(), c));
  }
}

TEST_P(ModulatedDeformConv2dTest, MatchesReferenceByProductsOfALibrary) {
  std::mt19937 rng(5);
  bool bias = false;
  const LibraryProducts products;
  for (const Case& c : kCases) {
    bias = !bias;
    SCOPED_TRACE(std::to_string(c.channels) + " channels, groups " + std::to_string(c.op.groups));
    ExpectMatchesReference(c.op, Inputs(c, GetParam(), rng, bias), SumTolerance(GetParam(), c));
  }
  Case c = kCases[1];
  c.filters = 20;
  std::vector<HostTensor> inputs = Inputs(c, GetParam(), rng, false);
  for (int64_t i = 0; i < inputs[1].size(); i += 3) inputs[1].set(i, i % 2 ? NAN : i % 4 ? INFINITY : 1e30);
  ExpectMatchesReference(c.op, inputs, SumTolerance(GetParam(), c));
  c.batch = 0;
  ExpectMatchesReference(c.op, Inputs(c, GetParam(), rng, true));
  EXPECT_TRUE(products.Used());
  const LibraryProducts parts(0);  // 64 pixels of an image at a time
  const Case& large = kCases[8];
  ExpectMatchesReference(large.op, Inputs(large, GetParam(), rng, true), SumTolerance(GetParam(), large));
}

INSTANTIATE_TEST_SUITE_P(Types, ModulatedDeformConv2dTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(ModulatedDeformConv2d, RandomConfigurations) {
  std::mt19937 rng(2);
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
  for (int i = 0; i < Rounds(60); ++i) {
    Case c;
    c.op.groups = draw(1, 3);
    c.op.deform_groups = draw(1, 3);
    c.op.stride = {draw(1, 2), draw(1, 3)};
    c.op.padding = {draw(0, 2), draw(0, 2)};
    c.op.dilation = {draw(1, 2), draw(1, 2)};
    c.batch = draw(1, 2);
    c.channels = c.op.groups * c.op.deform_groups * draw(1, 4);
    c.filters = c.op.groups * draw(1, 9);
    c.kh = draw(1, 3);
    c.kw = draw(1, 3);
    c.height = draw(5, 12);
    c.width = draw(5, 12);
    ExpectMatchesReference(c.op, Inputs(c, DType::kF32, rng, i % 2), SumTolerance(DType::kF32, c));
  }
}

TEST(ModulatedDeformConv2d, NanAndInfiniteOffsetsSampleZero) {
  std::mt19937 rng(3);
  const Case& c = kCases[1];
  std::vector<HostTensor> inputs = Inputs(c, DType::kF32, rng, false);
  for (int64_t i = 0; i < inputs[1].size(); i += 3) inputs[1].set(i, i % 2 ? NAN : i % 4 ? INFINITY : 1e30);
  ExpectMatchesReference(c.op, inputs, SumTolerance(DType::kF32, c));
}

TEST(ModulatedDeformConv2d, EmptyInputs) {
  std::mt19937 rng(4);
  Case c = kCases[1];
  c.batch = 0;
  ExpectMatchesReference(c.op, Inputs(c, DType::kF32, rng, true));
  c = kCases[1];
  c.filters = 0;
  ExpectMatchesReference(c.op, Inputs(c, DType::kF32, rng, false));
}

TEST(ModulatedDeformConv2d, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  const Case& c = kCases[1];
  const std::vector<HostTensor> good = Inputs(c, DType::kF32, rng, true);
  const auto with = [&](size_t index, const Shape& shape) {
    std::vector<HostTensor> inputs = good;
    inputs[index] = HostTensor::Full(DType::kF32, shape, 0);
    return inputs;
  };
  ExpectError(c.op, with(1, {2, 17, 7, 9}),
              {"'offset'", "expected dimension 1 to be 2*deform_groups*KH*KW = 18", "got 17"});
  ExpectError(c.op, with(1, {2, 18, 6, 9}), {"'offset'", "expected dimension 2 to be OH", "got 6", "= 7"});
  ExpectError(c.op, with(2, {2, 8, 7, 9}), {"'mask'", "to be deform_groups*KH*KW = 9"});
  ExpectError(c.op, with(2, {2, 9, 7, 8}), {"'mask'", "expected dimension 3 to be OW = 9", "got 8"});
  ExpectError(c.op, with(2, {2, 9, 8, 9}), {"'mask'", "expected dimension 2 to be OH = 7", "got 8"});
  ExpectError(c.op, with(3, {5, 2, 3, 3}), {"'weight'", "expected dimension 1 to be C/groups = 3", "got 2"});
  ExpectError(c.op, with(4, {4}), {"'bias'", "to be O = 5"});
  ExpectError(c.op, with(0, {2, 3, 7}), {"'input': expected rank 4, got 3"});
  ModulatedDeformConv2d two = c.op;
  two.groups = 2;
  ExpectError(two, with(3, {5, 1, 3, 3}), {"'input': expected channels divisible by groups = 2", "got 3 channels"});
  const Op& op = *FindOp("modulated_deform_conv2d");
  ExpectAttributeError(op, {{"stride", AttrValue::Ints({0, 1})}}, {"'stride': expected", "got 0"});
  ExpectAttributeError(op, {{"dilation", AttrValue::Ints({1, 1, 1})}}, {"expected 2 values, got 3"});
  ExpectAttributeError(op, {{"groups", AttrValue::Int(0)}}, {"'groups': expected", "got 0"});
  Params params;
  ASSERT_TRUE(MakeParams(op, {{"deformable_groups", AttrValue::Int(4)}, {"group", AttrValue::Int(2)}}, &params).ok());
  EXPECT_EQ(static_cast<const ModulatedDeformConv2d*>(params.get())->deform_groups, 4);
  EXPECT_EQ(static_cast<const ModulatedDeformConv2d*>(params.get())->groups, 2);
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/modulated_deform_conv2d/modulated_deform_conv2d_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/library_products.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Case {
  int64_t batch, channels, height, width, filters, kh, kw;
  DeformConvRule rule;

  ModulatedDeformConv2dBackward op() const {
    ModulatedDeformConv2dBackward op;
    static_cast<DeformConvRule&>(op) = rule;
    return op;
  }
};

std::vector<HostTensor> Inputs(const Case& c, DType dtype, std::mt19937& rng) {
  const auto extent = [&](int64_t in, int axis, int64_t kernel) {
    return (in + 2 * c.rule.padding[axis] - c.rule.dilation[axis] * (kernel - 1) - 1) / c.rule.stride[axis] + 1;
  };
  const int64_t oh = extent(c.height, 0, c.kh), ow = extent(c.width, 1, c.kw);
  const int64_t points = c.rule.deform_groups * c.kh * c.kw;
  return {HostTensor::Uniform(dtype, {c.batch, c.filters, oh, ow}, rng),
          HostTensor::Uniform(dtype, {c.batch, c.channels, c.height, c.width}, rng),
          HostTensor::Uniform(dtype, {c.batch, 2 * points, oh, ow}, rng, -3, 3),
          HostTensor::Uniform(dtype, {c.batch, points, oh, ow}, rng, 0, 1),
          HostTensor::Uniform(dtype, {c.filters, c.channels / c.rule.groups, c.kh, c.kw}, rng)};
}

// The error of sums of products of values below 1: over channels and filters, or over output pixels.
Tolerance SumTolerance(DType dtype, const Case& c) {
  const double terms = static_cast<double>(c.channels / c.rule.groups * c.filters) +
                       static_cast<double>(c.batch * c.height * c.width * c.kh * c.kw);
  const Tolerance one = ToleranceFor(dtype);
  return {one.relative, one.absolute * (dtype == DType::kF32 ? std::sqrt(terms) * 2 : 2)};
}

const Case kCases[] = {
    {1, 1, 5, 5, 1, 1, 1, {}},
    {2, 3, 7, 9, 5, 3, 3, {.padding = {1, 1}}},
    {3, 16, 6, 6, 8, 3, 3, {.padding = {1, 1}}},
    {1, 17, 8, 5, 70, 3, 2, {.stride = {2, 1}, .padding = {0, 2}, .dilation = {1, 2}}},
    {2, 8, 9, 7, 12, 3, 3, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 1}, .groups = 4, .deform_groups = 2}},
    {1, 12, 6, 7, 6, 2, 3, {.padding = {1, 1}, .groups = 2, .deform_groups = 3}},    // deform groups straddle groups
    {1, 10, 6, 6, 10, 3, 3, {.padding = {1, 1}, .groups = 10, .deform_groups = 2}},  // depthwise
    {1, 9, 6, 6, 18, 3, 3, {.padding = {1, 1}, .groups = 9, .deform_groups = 9}},    // depthwise with a multiplier
    {5, 64, 11, 13, 96, 3, 3, {.padding = {1, 1}, .deform_groups = 4}},              // images of several tasks
    {1, 83, 9, 18, 150, 3, 2, {.padding = {1, 1}}},  // several passes and tiles, the last ones partial
    {1, 96, 9, 18, 144, 3, 3, {.padding = {1, 1}}},  // passes of several blocks
    {2, 72, 8, 9, 144, 3, 3, {.groups = 3, .deform_groups = 1}},
    {20, 5, 5, 4, 3, 2, 2, {}},  // more images than are computed at once
};

class ModulatedDeformConv2dBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(ModulatedDeformConv2dBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::to_string(c.channels) + " channels, groups " + std::to_string(c.rule.groups) +
                 ", deform groups " + std::to_string(c.rule.deform_groups));
    ExpectMatchesReference(c.op(), Inputs(c, GetParam(), rng), SumTolerance(GetParam(), c));
  }
}

// Those that have enough filters and channels for products.
const Case kCasesOfProducts[] = {
    {2, 16, 6, 7, 16, 3, 3, {.padding = {1, 1}}},
    {1, 17, 8, 5, 70, 3, 2, {.stride = {2, 1}, .padding = {0, 2}, .dilation = {1, 2}}},  // no packs of channels
    {3, 64, 11, 13, 36, 3, 2, {.padding = {1, 1}, .groups = 2, .deform_groups = 4}},     // several lanes for a sample
    {2, 96, 8, 9, 40, 2, 2, {.groups = 2, .deform_groups = 3}},  // deform groups straddle groups
    {2, 132, 9, 10, 17, 1, 2, {}},                               // a warp for a sample
};

TEST_P(ModulatedDeformConv2dBackwardTest, MatchesReferenceByProductsOfALibrary) {
  std::mt19937 rng(11);
  // All output pixels at once, 64 of an image, and some images.
  for (int64_t bytes : {cuda_emulation::library_matrix_bytes, int64_t{0}, int64_t{1} << 19}) {
    const LibraryProducts products(bytes);
    for (const Case& c : kCasesOfProducts) {
      SCOPED_TRACE(Concat(c.channels, " channels, ", bytes, " bytes"));
      ExpectMatchesReference(c.op(), Inputs(c, GetParam(), rng), SumTolerance(GetParam(), c));
    }
    EXPECT_TRUE(products.Used());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ModulatedDeformConv2dBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(ModulatedDeformConv2dBackward, RandomConfigurations) {
  std::mt19937 rng(2);
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
  for (int i = 0; i < Rounds(60); ++i) {
    Case c;
    c.rule.groups = draw(1, 3);
    c.rule.deform_groups = draw(1, 3);
    c.rule.stride = {draw(1, 2), draw(1, 3)};
    c.rule.padding = {draw(0, 2), draw(0, 2)};
    c.rule.dilation = {draw(1, 2), draw(1, 2)};
    c.batch = draw(1, 3);
    c.channels = c.rule.groups * c.rule.deform_groups * draw(1, 9);
    c.filters = c.rule.groups * draw(1, 9);
    c.kh = draw(1, 3);
    c.kw = draw(1, 3);
    c.height = draw(5, 20);
    c.width = draw(5, 20);
    ExpectMatchesReference(c.op(), Inputs(c, DType::kF32, rng), SumTolerance(DType::kF32, c));
  }
}

TEST(ModulatedDeformConv2dBackward, ComputesThoseThatAreNeeded) {
  std::mt19937 rng(3);
  const Case& c = kCases[3];
  const std::vector<HostTensor> inputs = Inputs(c, DType::kF32, rng);
  ExpectOnlyRequestedGradients(c.op(), inputs, 5);
}

// Products of parts of one image, whose last part is smaller.
TEST(ModulatedDeformConv2dBackward, LargeImagesByProductsOfALibrary) {
  std::mt19937 rng(12);
  const LibraryProducts products;
  const Case c{1, 16, 48, 46, 16, 1, 1, {}};
  ExpectMatchesReference(c.op(), Inputs(c, DType::kF32, rng), SumTolerance(DType::kF32, c));
  EXPECT_TRUE(products.Used());
}

// Tiles compute everything again.
TEST(ModulatedDeformConv2dBackward, ProductThatTheLibraryDoesNotSupport) {
  std::mt19937 rng(14);
  const Case& c = kCasesOfProducts[0];
  for (int64_t supported : {0, 1, 2, 3}) {
    SCOPED_TRACE(supported);
    const LibraryProducts products(0, supported);
    ExpectMatchesReference(c.op(), Inputs(c, DType::kF32, rng), SumTolerance(DType::kF32, c));
  }
}

TEST(ModulatedDeformConv2dBackward, ComputesThoseThatAreNeededByProductsOfALibrary) {
  std::mt19937 rng(13);
  const LibraryProducts products;
  const Case c{2, 16, 5, 6, 16, 2, 2, {}};
  ExpectAllMasksMatchReference(c.op(), Inputs(c, DType::kF32, rng), 5, SumTolerance(DType::kF32, c));
}

TEST(ModulatedDeformConv2dBackward, OffsetsOfZeroAndOnTheBorder) {
  std::mt19937 rng(4);
  for (double offset : {0.0, 1.0, -1.0, 2.0, -0.5}) {
    std::vector<HostTensor> inputs = Inputs(kCases[1], DType::kF32, rng);
    inputs[2] = HostTensor::Full(DType::kF32, inputs[2].shape(), offset);
    ExpectMatchesReference(kCases[1].op(), inputs, SumTolerance(DType::kF32, kCases[1]));
  }
}

TEST(ModulatedDeformConv2dBackward, NanAndInfiniteOffsetsHaveNoGradient) {
  std::mt19937 rng(5);
  const Case& c = kCases[1];
  std::vector<HostTensor> inputs = Inputs(c, DType::kF32, rng);
  for (int64_t i = 0; i < inputs[2].size(); i += 3) inputs[2].set(i, i % 2 ? NAN : i % 4 ? INFINITY : 1e30);
  ExpectMatchesReference(c.op(), inputs, SumTolerance(DType::kF32, c));
  inputs[2] = HostTensor::Full(DType::kF32, inputs[2].shape(), NAN);
  ExpectMatchesReference(c.op(), inputs, SumTolerance(DType::kF32, c));
  const LibraryProducts products;
  const Case& large = kCasesOfProducts[0];
  inputs = Inputs(large, DType::kF32, rng);
  for (int64_t i = 0; i < inputs[2].size(); i += 3) inputs[2].set(i, i % 2 ? NAN : i % 4 ? INFINITY : 1e30);
  ExpectMatchesReference(large.op(), inputs, SumTolerance(DType::kF32, large));
}

// With offsets of 0, a gradient of one output pixel touches the pixels under the kernel, of the channels of its group.
TEST(ModulatedDeformConv2dBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(6);
  Case c{2, 6, 7, 7, 4, 3, 3, {.padding = {1, 1}, .groups = 2}};
  std::vector<HostTensor> inputs = Inputs(c, DType::kF32, rng);
  inputs[2] = HostTensor::Full(DType::kF32, inputs[2].shape(), 0);
  inputs[0].set(3 * 49 + 2 * 7 + 4, NAN);  // image 0, filter 3 of group 1, pixel (2, 4)
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(c.op(), inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) {
    const int64_t n = i / 49 / 6, channel = i / 49 % 6, y = i / 7 % 7, x = i % 7;
    const bool touched = n == 0 && channel >= 3 && std::abs(y - 2) <= 1 && std::abs(x - 4) <= 1;
    EXPECT_EQ(std::isnan(grads[0].at(i)), touched) << i;
  }
  for (int64_t i = 0; i < grads[1].size(); ++i) EXPECT_EQ(std::isnan(grads[1].at(i)), i < 18 * 49 && i % 49 == 18) << i;
  for (int64_t i = 0; i < grads[2].size(); ++i) EXPECT_EQ(std::isnan(grads[2].at(i)), i < 9 * 49 && i % 49 == 18) << i;
  for (int64_t i = 0; i < grads[3].size(); ++i) EXPECT_EQ(std::isnan(grads[3].at(i)), i / 27 == 3) << i;
  for (int64_t i = 0; i < grads[4].size(); ++i) EXPECT_EQ(std::isnan(grads[4].at(i)), i == 3) << i;
}

// The convolution is linear in its input and in its weights.
TEST(ModulatedDeformConv2dBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(7);
  const Case c{2, 40, 20, 21, 36, 3, 3, {.padding = {1, 1}}};
  const std::vector<HostTensor> inputs = Inputs(c, DType::kF32, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(c.op(), inputs, &grads).ok());
  const ModulatedDeformConv2d forward{c.rule};
  ASSERT_TRUE(testing::Run(forward, {inputs[1], inputs[2], inputs[3], inputs[4], HostTensor::Absent()}, &output).ok());
  double left = 0, by_input = 0, by_weight = 0;
  for (int64_t i = 0; i < output[0].size(); ++i) left += output[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grads[0].size(); ++i) by_input += grads[0].at(i) * inputs[1].at(i);
  for (int64_t i = 0; i < grads[3].size(); ++i) by_weight += grads[3].at(i) * inputs[4].at(i);
  EXPECT_NEAR(left, by_input, 0.02);
  EXPECT_NEAR(left, by_weight, 0.02);
}

// The reference kernel's gradients, compared with the reference kernel of the forward pass.
TEST(ModulatedDeformConv2dBackward, EqualsFiniteDifferences) {
  std::mt19937 rng(10);
  const Case c{1, 4, 5, 6, 3, 3, 2, {.stride = {2, 1}, .padding = {1, 1}, .deform_groups = 2}};
  const std::vector<HostTensor> inputs = Inputs(c, DType::kF64, rng);
  const ModulatedDeformConv2dBackward op = c.op();
  const ModulatedDeformConv2d forward{c.rule};
  std::vector<HostTensor> grads;
  ASSERT_TRUE(RunReference(*FindOp(op.kName), &op, inputs, &grads).ok());
  const auto product = [&](size_t tensor, int64_t i, double step) {  // of gradients and outputs
    std::vector<HostTensor> moved = {inputs[1], inputs[2], inputs[3], inputs[4], HostTensor::Absent()}, output;
    moved[tensor].set(i, moved[tensor].at(i) + step);
    EXPECT_TRUE(RunReference(*FindOp(forward.kName), &forward, moved, &output).ok());
    double sum = 0;
    for (int64_t o = 0; o < output[0].size(); ++o) sum += output[0].at(o) * inputs[0].at(o);
    return sum;
  };
  for (size_t tensor = 0; tensor < 4; ++tensor) {
    for (int64_t i = 0; i < grads[tensor].size(); i += 5) {
      const double slope = (product(tensor, i, 1e-6) - product(tensor, i, -1e-6)) / 2e-6;
      EXPECT_NEAR(grads[tensor].at(i), slope, 1e-6) << "input " << tensor << ", element " << i;
    }
  }
}

TEST(ModulatedDeformConv2dBackward, EmptyInputs) {
  std::mt19937 rng(8);
  Case c = kCases[1];
  c.batch = 0;
  ExpectMatchesReference(c.op(), Inputs(c, DType::kF32, rng));
  c = kCases[1];
  c.filters = 0;
  ExpectMatchesReference(c.op(), Inputs(c, DType::kF32, rng));
  c = kCases[1];
  c.channels = 0;
  ExpectMatchesReference(c.op(), Inputs(c, DType::kF32, rng));
  c = kCases[1];
  c.height = 0;
  c.rule.padding = {2, 1};
  ExpectMatchesReference(c.op(), Inputs(c, DType::kF32, rng));
  const LibraryProducts products;
  c.channels = c.filters = 16;
  ExpectMatchesReference(c.op(), Inputs(c, DType::kF32, rng));
  c = kCasesOfProducts[0];
  c.batch = 0;
  ExpectMatchesReference(c.op(), Inputs(c, DType::kF32, rng));
}

TEST(ModulatedDeformConv2dBackward, RejectsInvalidInputs) {
  std::mt19937 rng(9);
  const Case& c = kCases[1];
  const std::vector<HostTensor> good = Inputs(c, DType::kF32, rng);
  const auto with = [&](size_t index, const Shape& shape) {
    std::vector<HostTensor> inputs = good;
    inputs[index] = HostTensor::Full(DType::kF32, shape, 0);
    return inputs;
  };
  ExpectError(c.op(), with(0, {2, 5, 6, 9}), {"expected dimension 2", "OH", "6"});
  ExpectError(c.op(), with(0, {2, 4, 7, 9}), {"'weight'", "O = 4", "got 5"});
  ExpectError(c.op(), with(2, {2, 17, 7, 9}), {"'offset'", "to be 2*deform_groups*KH*KW = 18", "got 17"});
  ExpectError(c.op(), with(3, {2, 8, 7, 9}), {"'mask'", "to be deform_groups*KH*KW = 9"});
  ExpectError(c.op(), with(4, {5, 2, 3, 3}), {"'weight'", "expected dimension 1 to be C/groups = 3", "got 2"});
  ModulatedDeformConv2dBackward two = c.op();
  two.groups = 2;
  ExpectError(two, with(4, {5, 1, 3, 3}), {"'input': expected channels divisible by groups = 2", "got 3 channels"});
}

}  // namespace
}  // namespace polyop::testing

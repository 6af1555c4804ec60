// SPDX-License-Identifier: Apache-2.0
// The kernel is that of grid_sampler_backward, whose test is detailed; this file tests the layout and the range of the
// grid.
#include "ops/sampling/planar_grid_sampler/planar_grid_sampler_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Interpolation = GridRule::Interpolation;
using Padding = GridRule::Padding;

PlanarGridSamplerBackward Backward(Interpolation mode, Padding padding = Padding::kZeros) {
  PlanarGridSamplerBackward op;
  op.interpolation_mode = mode;
  op.padding_mode = padding;
  return op;
}

// Random gradients, inputs and grids of these shapes. Positions are in the middle of a quarter of a pixel, where no
// rounding changes the pixels: the extents of the input must be powers of two.
std::vector<HostTensor> Inputs(DType dtype, const Shape& input, const Shape& grid, std::mt19937& rng) {
  Shape output = grid;
  output[1] = input[1];
  std::uniform_int_distribution<int> step(-20, 19);
  HostTensor points(dtype, grid);
  for (int64_t i = 0; i < points.size(); ++i) points.set(i, (step(rng) + 0.5) / 16 * 10);
  return {HostTensor::Uniform(dtype, output, rng), HostTensor::Uniform(dtype, input, rng), points};
}

class PlanarGridSamplerBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(PlanarGridSamplerBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 20;  // sums of many products
  for (auto mode : {Interpolation::kBilinear, Interpolation::kNearest, Interpolation::kBicubic}) {
    for (auto padding : {Padding::kZeros, Padding::kBorder, Padding::kReflection}) {
      const PlanarGridSamplerBackward op = Backward(mode, padding);
      ExpectMatchesReference(op, Inputs(GetParam(), {2, 5, 4, 2}, {2, 2, 7, 5}, rng), tolerance);
      if (mode == Interpolation::kBicubic) continue;
      ExpectMatchesReference(op, Inputs(GetParam(), {1, 3, 2, 4, 2}, {1, 3, 3, 2, 5}, rng), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PlanarGridSamplerBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Sampling is linear in the input. The gradient of the grid is compared with differences.
TEST(PlanarGridSamplerBackward, IsTheDerivativeOfTheForwardPass) {
  std::mt19937 rng(2);
  const PlanarGridSamplerBackward op = Backward(Interpolation::kBilinear, Padding::kBorder);
  const std::vector<HostTensor> inputs = Inputs(DType::kF64, {2, 3, 8, 4}, {2, 2, 3, 5}, rng);
  RunOptions options;
  options.device = Device::kReference;
  const auto value_at = [&](const HostTensor& grid) {
    std::vector<HostTensor> output;
    EXPECT_TRUE(testing::Run(static_cast<const PlanarGridSampler&>(op), {inputs[1], grid}, &output, options).ok());
    double sum = 0;
    for (int64_t i = 0; i < output[0].size(); ++i) sum += output[0].at(i) * inputs[0].at(i);
    return sum;
  };
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(op, inputs, &grads, options).ok());
  double product = 0;
  for (int64_t i = 0; i < grads[0].size(); ++i) product += grads[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(product, value_at(inputs[2]), 1e-6);
  for (int64_t i = 0; i < inputs[2].size(); ++i) {
    constexpr double kStep = 1e-4;
    HostTensor more = inputs[2], less = inputs[2];
    more.set(i, more.at(i) + kStep);
    less.set(i, less.at(i) - kStep);
    EXPECT_NEAR(grads[1].at(i), (value_at(more) - value_at(less)) / (2 * kStep), 1e-6) << i;
  }
}

TEST(PlanarGridSamplerBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = Inputs(DType::kF16, {2, 18, 8, 4}, {2, 2, 6, 7}, rng);
  ExpectOnlyRequestedGradients(PlanarGridSamplerBackward{}, inputs, 2);
}

TEST(PlanarGridSamplerBackward, EmptyNanAndInvalidInputs) {
  std::mt19937 rng(4);
  const PlanarGridSamplerBackward op;
  ExpectMatchesReference(op, Inputs(DType::kF32, {0, 3, 4, 4}, {0, 2, 2, 2}, rng));
  ExpectMatchesReference(op, Inputs(DType::kF32, {1, 3, 4, 4}, {1, 2, 0, 2}, rng));
  std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 3, 4, 4}, {1, 2, 1, 3}, rng);
  inputs[2] = HostTensor::Of(DType::kF32, {1, 2, 1, 3}, {NAN, 1, INFINITY, 0, NAN, -INFINITY});
  ExpectMatchesReference(op, inputs);
  inputs[1] = HostTensor::Full(DType::kF32, {1, 3, 0, 4}, 0);
  ExpectError(op, inputs, {"'input': expected planes with at least one pixel"});
  inputs[2] = HostTensor::Full(DType::kF32, {1, 3, 1, 3}, 0);
  ExpectError(op, inputs, {"'grid'", "expected dimension 1 to be 2, got 3"});
}

}  // namespace
}  // namespace polyop::testing

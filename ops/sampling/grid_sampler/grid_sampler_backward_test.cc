// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_sampler/grid_sampler_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Interpolation = GridSampler::Interpolation;
using Padding = GridSampler::Padding;

GridSamplerBackward Backward(Interpolation mode, Padding padding, bool align_corners) {
  GridSamplerBackward op;
  op.interpolation_mode = mode;
  op.padding_mode = padding;
  op.align_corners = align_corners;
  return op;
}

// Coordinates are multiples of 1/32, so that positions are exact in fp32; some are -1, 0 or 1, and some far outside.
HostTensor Grid(DType dtype, const Shape& shape, std::mt19937& rng) {
  std::uniform_int_distribution<int> step(-52, 52), pick(0, 9);
  HostTensor grid(dtype, shape);
  for (int64_t i = 0; i < grid.size(); ++i) {
    const int kind = pick(rng);
    grid.set(i, kind == 0 ? -1 : kind == 1 ? 1 : kind == 2 ? 5.25 : step(rng) / 32.0);
  }
  return grid;
}

// Returns a random gradient, an input of this shape, and the grid.
std::vector<HostTensor> Inputs(DType dtype, const Shape& input, const HostTensor& grid, std::mt19937& rng) {
  Shape output{input[0], input[1]};
  for (int d = 1; d + 1 < grid.shape().rank(); ++d) output.push_back(grid.shape()[d]);
  return {HostTensor::Uniform(dtype, output, rng), HostTensor::Uniform(dtype, input, rng), grid};
}

// Sums of many products; the gradients of the grid are multiplied by half the extents.
Tolerance ToleranceOfSums(DType dtype) {
  Tolerance tolerance = ToleranceFor(dtype);
  tolerance.absolute *= 20;
  return tolerance;
}

class GridSamplerBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(GridSamplerBackwardTest, MatchesReferenceOnImages) {
  std::mt19937 rng(1);
  for (auto mode : {Interpolation::kBilinear, Interpolation::kNearest, Interpolation::kBicubic}) {
    for (auto padding : {Padding::kZeros, Padding::kBorder, Padding::kReflection}) {
      for (bool align : {false, true}) {
        // Extents of powers of two, so that positions are exact: derivatives jump at pixels and borders.
        for (const Shape& shape : {Shape{2, 3, 4, 8}, Shape{1, 17, 1, 1}, Shape{1, 1, 16, 2}, Shape{3, 20, 2, 4}}) {
          // With align_corners, an extent is a power of two plus one.
          Shape exact = shape;
          if (align && shape[2] > 1) exact = {shape[0], shape[1], shape[2] + 1, shape[3] + 1};
          SCOPED_TRACE(ToString(exact) + " mode " + std::to_string(static_cast<int>(mode)) + " padding " +
                       std::to_string(static_cast<int>(padding)));
          const HostTensor grid = Grid(GetParam(), {shape[0], 7, 5, 2}, rng);
          ExpectMatchesReference(Backward(mode, padding, align), Inputs(GetParam(), exact, grid, rng),
                                 ToleranceOfSums(GetParam()));
        }
      }
    }
  }
}

TEST_P(GridSamplerBackwardTest, MatchesReferenceOnVolumes) {
  std::mt19937 rng(2);
  for (auto mode : {Interpolation::kBilinear, Interpolation::kNearest}) {
    for (auto padding : {Padding::kZeros, Padding::kBorder, Padding::kReflection}) {
      for (const Shape& shape : {Shape{2, 3, 2, 4, 8}, Shape{1, 2, 1, 1, 1}}) {
        const HostTensor grid = Grid(GetParam(), {shape[0], 3, 2, 11, 3}, rng);
        ExpectMatchesReference(Backward(mode, padding, false), Inputs(GetParam(), shape, grid, rng),
                               ToleranceOfSums(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GridSamplerBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Several chunks of points, and several bands of rows.
TEST(GridSamplerBackward, ManyPoints) {
  std::mt19937 rng(3);
  for (auto mode : {Interpolation::kBilinear, Interpolation::kBicubic}) {
    const HostTensor grid = HostTensor::Uniform(DType::kF32, {1, 30, 41, 2}, rng, -1.2, 1.2);
    ExpectMatchesReference(Backward(mode, Padding::kZeros, false), Inputs(DType::kF32, {1, 5, 70, 33}, grid, rng),
                           {1e-4, 5e-3});
  }
}

// Images that exceed the L2 cache, whose points are visited in the order of rows; the last has several segments of
// points.
TEST(GridSamplerBackward, LargeImages) {
  std::mt19937 rng(8);
  const auto expect = [&](Interpolation mode, Padding padding, const Shape& input, const Shape& grid) {
    SCOPED_TRACE(ToString(input) + " mode " + std::to_string(static_cast<int>(mode)));
    ExpectMatchesReference(Backward(mode, padding, false),
                           Inputs(DType::kF32, input, Grid(DType::kF32, grid, rng), rng), {1e-4, 2e-3});
  };
  for (auto padding : {Padding::kZeros, Padding::kReflection}) {
    expect(Interpolation::kBilinear, padding, {2, 35, 128, 128}, {2, 30, 41, 2});
    expect(Interpolation::kBicubic, padding, {1, 3, 64, 256}, {1, 30, 41, 2});
    expect(Interpolation::kBilinear, padding, {1, 3, 8, 32, 64}, {1, 3, 20, 11, 3});
  }
  expect(Interpolation::kBilinear, Padding::kBorder, {1, 1, 128, 128}, {1, 520, 520, 2});
}

TEST(GridSamplerBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(4);
  const HostTensor grid = HostTensor::Uniform(DType::kF32, {2, 6, 7, 2}, rng, -1.2, 1.2);
  const std::vector<HostTensor> inputs = Inputs(DType::kF32, {2, 18, 7, 9}, grid, rng);
  ExpectOnlyRequestedGradients(GridSamplerBackward{}, inputs, 2);
}

// Sampling is linear in the input.
TEST(GridSamplerBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(5);
  for (auto mode : {Interpolation::kBilinear, Interpolation::kNearest, Interpolation::kBicubic}) {
    const GridSamplerBackward op = Backward(mode, Padding::kReflection, true);
    const HostTensor grid = HostTensor::Uniform(DType::kF32, {2, 16, 17, 2}, rng, -1.5, 1.5);
    const std::vector<HostTensor> inputs = Inputs(DType::kF32, {2, 19, 17, 9}, grid, rng);
    std::vector<HostTensor> grads, output;
    ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
    ASSERT_TRUE(testing::Run(static_cast<const GridSampler&>(op), {inputs[1], inputs[2]}, &output).ok());
    double left = 0, right = 0;
    for (int64_t i = 0; i < output[0].size(); ++i) left += output[0].at(i) * inputs[0].at(i);
    for (int64_t i = 0; i < grads[0].size(); ++i) right += grads[0].at(i) * inputs[1].at(i);
    EXPECT_NEAR(left, right, 1e-3);
  }
}

TEST(GridSamplerBackward, NanStaysWhereItBelongs) {
  std::mt19937 rng(6);
  // align_corners = false: x = 2 * grid + 1.5, so these are the centres of pixels (1, 1) and (3, 2).
  const HostTensor grid = HostTensor::Of(DType::kF32, {1, 1, 3, 2}, {-0.25, -0.25, 0.75, 0.25, NAN, 0.25});
  std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 2, 4, 4}, grid, rng);
  inputs[0].set(3, NAN);  // channel 1, point 0
  inputs[0].set(2, NAN);  // a point that samples nothing
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(GridSamplerBackward{}, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 16 + 5) << i;
  for (int64_t i = 0; i < grads[1].size(); ++i) EXPECT_EQ(std::isnan(grads[1].at(i)), i < 2) << i;
}

TEST(GridSamplerBackward, NanAndInfiniteCoordinates) {
  std::mt19937 rng(7);
  const HostTensor grid =
      HostTensor::Of(DType::kF32, {1, 1, 6, 2}, {NAN, 0, 0, NAN, NAN, NAN, INFINITY, 0, 0, -INFINITY, 3e38, -3e38});
  for (auto mode : {Interpolation::kBilinear, Interpolation::kNearest, Interpolation::kBicubic}) {
    for (auto padding : {Padding::kZeros, Padding::kBorder}) {
      ExpectMatchesReference(Backward(mode, padding, false), Inputs(DType::kF32, {1, 3, 4, 4}, grid, rng),
                             {1e-5, 1e-4});
    }
  }
}

TEST(GridSamplerBackward, EmptyAndInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  const GridSamplerBackward op;
  ExpectMatchesReference(op, {f32({0, 3, 2, 2}), f32({0, 3, 4, 4}), f32({0, 2, 2, 2})});
  ExpectMatchesReference(op, {f32({1, 3, 0, 2}), f32({1, 3, 4, 4}), f32({1, 0, 2, 2})});
  ExpectMatchesReference(op, {f32({1, 0, 2, 2}), f32({1, 0, 4, 4}), f32({1, 2, 2, 2})});
  ExpectError(op, {f32({1, 3, 2, 2}), f32({1, 3, 0, 4}), f32({1, 2, 2, 2})},
              {"'input': expected planes with at least one pixel"});
  ExpectError(op, {f32({1, 3, 2, 2}), f32({1, 3, 4, 4}), f32({1, 2, 3, 2})}, {"'grid'", "OW = 2", "got 3"});
  ExpectError(op, {f32({1, 2, 2, 2}), f32({1, 3, 4, 4}), f32({1, 2, 2, 2})}, {"'input'", "C = 2", "got 3"});
  ExpectError(Backward(Interpolation::kBicubic, Padding::kZeros, false),
              {f32({1, 3, 2, 2, 2}), f32({1, 3, 4, 4, 4}), f32({1, 2, 2, 2, 3})},
              {"'interpolation_mode': expected bilinear or nearest for a 5-D 'input', got bicubic"});
}

}  // namespace
}  // namespace polyop::testing

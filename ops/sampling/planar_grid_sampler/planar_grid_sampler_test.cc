// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/planar_grid_sampler/planar_grid_sampler.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Interpolation = GridRule::Interpolation;
using Padding = GridRule::Padding;

// Multiples of 10 / 32, so that a tenth of them and halfway positions are exact in float.
HostTensor Grid(DType dtype, const Shape& shape, std::mt19937& rng) {
  std::uniform_int_distribution<int> step(-40, 40);
  HostTensor grid(dtype, shape);
  for (int64_t i = 0; i < grid.size(); ++i) grid.set(i, step(rng) / 3.2);
  return grid;
}

class PlanarGridSamplerTest : public ::testing::TestWithParam<DType> {};

TEST_P(PlanarGridSamplerTest, MatchesReference) {
  std::mt19937 rng(1);
  for (auto mode : {Interpolation::kBilinear, Interpolation::kNearest, Interpolation::kBicubic}) {
    for (auto padding : {Padding::kZeros, Padding::kBorder, Padding::kReflection}) {
      for (bool align : {false, true}) {
        // A tenth of f16 and bf16 is not exact, so nearest could round differently.
        if (mode == Interpolation::kNearest && GetParam() != DType::kF32) continue;
        const PlanarGridSampler op{mode, padding, align};
        ExpectMatchesReference(
            op, {HostTensor::Uniform(GetParam(), {2, 5, 4, 8}, rng), Grid(GetParam(), {2, 2, 7, 5}, rng)},
            ToleranceFor(GetParam()));
        if (mode == Interpolation::kBicubic) continue;
        ExpectMatchesReference(
            op, {HostTensor::Uniform(GetParam(), {1, 3, 2, 4, 8}, rng), Grid(GetParam(), {1, 3, 3, 2, 5}, rng)},
            ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PlanarGridSamplerTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(PlanarGridSampler, TenIsTheEdge) {
  const HostTensor input = HostTensor::Of(DType::kF32, {1, 1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  // x of three points, then their y: the centre of pixel (0, 3), of pixel (1, 0), and a point outside.
  const HostTensor grid = HostTensor::Of(DType::kF32, {1, 2, 1, 3}, {7.5, -7.5, 30, -5, 5, 0});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(PlanarGridSampler{}, {input, grid}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{3, 4, 0}));
}

TEST(PlanarGridSampler, EmptyNanAndInvalidInputs) {
  std::mt19937 rng(2);
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(PlanarGridSampler{}, {f32({0, 3, 4, 4}), f32({0, 2, 2, 2})});
  ExpectMatchesReference(PlanarGridSampler{}, {f32({1, 3, 4, 4}), f32({1, 2, 0, 2})});
  ExpectMatchesReference(PlanarGridSampler{},
                         {HostTensor::Uniform(DType::kF32, {1, 3, 4, 4}, rng),
                          HostTensor::Of(DType::kF32, {1, 2, 1, 3}, {NAN, 1, INFINITY, 0, NAN, -INFINITY})});
  ExpectError(PlanarGridSampler{}, {f32({1, 3, 0, 4}), f32({1, 2, 2, 2})},
              {"'input': expected planes with at least one pixel"});
  ExpectError(PlanarGridSampler{}, {f32({1, 3, 4, 4}), f32({1, 3, 2, 2})},
              {"'grid'", "expected dimension 1 to be 2, got 3"});
  ExpectError(PlanarGridSampler{Interpolation::kBicubic}, {f32({1, 3, 4, 4, 4}), f32({1, 3, 2, 2, 2})},
              {"'interpolation_mode': expected bilinear or nearest for a 5-D 'input', got bicubic"});
}

}  // namespace
}  // namespace polyop::testing

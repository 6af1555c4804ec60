// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cubic_resize/cubic_resize.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Transformation = CubicResize::Transformation;

constexpr Transformation kTransformations[] = {Transformation::kHalfPixel, Transformation::kPytorchHalfPixel,
                                               Transformation::kAlignCorners, Transformation::kAsymmetric};

HostTensor Sizes(int64_t rows, int64_t columns) {
  return HostTensor::Of(DType::kI64, {2}, {static_cast<double>(rows), static_cast<double>(columns)});
}

class CubicResizeTest : public ::testing::TestWithParam<DType> {};

TEST_P(CubicResizeTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Transformation transformation : kTransformations) {
    for (const bool exclude_outside : {false, true}) {
      for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 3, 5, 7}, Shape{1, 1, 2, 33}, Shape{0, 3, 4, 4}}) {
        for (const auto& [rows, columns] : {std::pair{1, 1}, {5, 14}, {13, 2}, {0, 4}}) {
          SCOPED_TRACE(ToString(shape) + " to " + std::to_string(rows) + " x " + std::to_string(columns));
          const CubicResize op{transformation, exclude_outside ? -0.5f : -0.75f, exclude_outside};
          ExpectMatchesReference(op, {HostTensor::Uniform(GetParam(), shape, rng), Sizes(rows, columns)},
                                 ToleranceFor(GetParam()));
        }
      }
    }
  }
}

TEST_P(CubicResizeTest, RandomShapes) {
  std::mt19937 rng(2);
  std::uniform_int_distribution<int64_t> extent(1, 40);
  std::uniform_real_distribution<float> a(-1, 0);
  for (int i = 0; i < Rounds(60); ++i) {
    const CubicResize op{kTransformations[i % 4], a(rng), i % 3 == 0};
    const Shape shape = {1 + i % 2, 1 + i % 3, extent(rng), extent(rng)};
    ExpectMatchesReference(op, {HostTensor::Uniform(GetParam(), shape, rng), Sizes(extent(rng), extent(rng))},
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CubicResizeTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(CubicResize, KeepsAConstant) {
  for (const Transformation transformation : kTransformations) {
    for (const bool exclude_outside : {false, true}) {
      std::vector<HostTensor> out;
      const CubicResize op{transformation, -0.5f, exclude_outside};
      ASSERT_TRUE(testing::Run(op, {HostTensor::Full(DType::kF32, {1, 1, 9, 11}, 0.75), Sizes(25, 6)}, &out).ok());
      for (double v : out[0].ToDoubles()) EXPECT_NEAR(v, 0.75, 1e-6);
    }
  }
}

TEST(CubicResize, AlignCornersKeepsCorners) {
  std::mt19937 rng(3);
  const HostTensor x = HostTensor::Uniform(DType::kF32, {1, 1, 4, 5}, rng);
  std::vector<HostTensor> out;
  const CubicResize op{Transformation::kAlignCorners, -0.75f, false};
  ASSERT_TRUE(testing::Run(op, {x, Sizes(10, 9)}, &out).ok());
  EXPECT_NEAR(out[0].at(0), x.at(0), 1e-6);
  EXPECT_NEAR(out[0].at(8), x.at(4), 1e-6);
  EXPECT_NEAR(out[0].at(10 * 9 - 1), x.at(4 * 5 - 1), 1e-6);
}

// Near the last pixel, the weights of the pixels inside are nearly 0, and so is their sum.
TEST(CubicResize, ExcludeOutsideNormalisesWeights) {
  std::mt19937 rng(4);
  const HostTensor x = HostTensor::Uniform(DType::kF32, {1, 1, 1, 2}, rng);
  for (const float a : {-0.75f, 0.0f}) {
    const CubicResize op{Transformation::kAsymmetric, a, true};
    ExpectMatchesReference(op, {x, Sizes(1, 3001)}, ToleranceFor(DType::kF32));
  }
}

TEST(CubicResize, NanReachesOnlyItsNeighbours) {
  std::mt19937 rng(5);
  HostTensor x = HostTensor::Uniform(DType::kF32, {1, 1, 12, 12}, rng);
  x.set(6 * 12 + 6, NAN);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(CubicResize{}, {x, Sizes(24, 24)}, &out).ok());
  EXPECT_TRUE(std::isnan(out[0].at(13 * 24 + 13)));
  EXPECT_FALSE(std::isnan(out[0].at(2 * 24 + 2)));
  EXPECT_FALSE(std::isnan(out[0].at(22 * 24 + 22)));
}

TEST(CubicResize, RejectsInvalidInputs) {
  const HostTensor x = HostTensor::Full(DType::kF32, {1, 2, 4, 4}, 1);
  ExpectError(CubicResize{}, {x, Sizes(-1, 4)}, {"'sizes'[0]: expected 0 or more, got -1"});
  ExpectError(CubicResize{}, {x, Sizes(4, -7)}, {"'sizes'[1]: expected 0 or more, got -7"});
  ExpectError(CubicResize{}, {HostTensor::Full(DType::kF32, {1, 2, 0, 4}, 1), Sizes(3, 4)},
              {"'sizes'[0]: expected 0, because 'input' has no pixels (shape [1, 2, 0, 4]), got 3"});
  ExpectError(CubicResize{}, {x, Sizes(int64_t{1} << 40, int64_t{1} << 40)}, {"expected a size that fits in 64 bits"});
  ExpectError(CubicResize{}, {x, HostTensor::Full(DType::kI64, {4}, 2)},
              {"'sizes'", "expected dimension 0 to be 2, got 4"});
  ExpectError(CubicResize{}, {HostTensor::Full(DType::kF32, {2, 4, 4}, 1), Sizes(2, 2)},
              {"'input': expected rank 4, got 3"});
  ExpectError(CubicResize{}, {HostTensor::Full(DType::kI32, {1, 2, 4, 4}, 1), Sizes(2, 2)}, {"no kernel takes"});
  ExpectError(CubicResize{}, {x, HostTensor::Full(DType::kF32, {2}, 2)}, {"no kernel takes"});
}

}  // namespace
}  // namespace polyop::testing

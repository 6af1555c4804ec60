// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/dynamic_resize/dynamic_resize.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor Scales(double vertical, double horizontal) {
  return HostTensor::Of(DType::kF32, {4}, {1, 1, vertical, horizontal});
}

class DynamicResizeTest : public ::testing::TestWithParam<DType> {};

TEST_P(DynamicResizeTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 3, 5, 7}, Shape{1, 1, 33, 1}, Shape{1, 2, 1, 33},
                             Shape{0, 3, 4, 4}, Shape{1, 0, 4, 4}, Shape{1, 1, 0, 4}, Shape{1, 17, 9, 8}}) {
    for (const auto& [v, h] : {std::pair{3.0, 3.0}, {2.5, 2.5}, {1.0, 1.0}, {0.5, 2.0}, {1.3, 0.71}, {0.1, 4.0}}) {
      SCOPED_TRACE(ToString(shape) + " by " + std::to_string(v) + ", " + std::to_string(h));
      ExpectMatchesReference(DynamicResize{}, {HostTensor::Uniform(GetParam(), shape, rng), Scales(v, h)},
                             ToleranceFor(GetParam()));
    }
  }
}

TEST_P(DynamicResizeTest, RandomShapes) {
  std::mt19937 rng(2);
  std::uniform_int_distribution<int64_t> extent(1, 40);
  std::uniform_real_distribution<double> scale(0.3, 4);
  for (int i = 0; i < Rounds(60); ++i) {
    const Shape shape = {1 + i % 2, 1 + i % 3, extent(rng), extent(rng)};
    ExpectMatchesReference(DynamicResize{},
                           {HostTensor::Uniform(GetParam(), shape, rng), Scales(scale(rng), scale(rng))},
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DynamicResizeTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(DynamicResize, KeepsAConstant) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(
      testing::Run(DynamicResize{}, {HostTensor::Full(DType::kF32, {1, 1, 9, 11}, 0.75), Scales(2.7, 3.3)}, &out).ok());
  for (double v : out[0].ToDoubles()) EXPECT_NEAR(v, 0.75, 1e-6);
}

TEST(DynamicResize, NanReachesOnlyItsNeighbours) {
  std::mt19937 rng(3);
  HostTensor x = HostTensor::Uniform(DType::kF32, {1, 1, 12, 12}, rng);
  x.set(6 * 12 + 6, NAN);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(DynamicResize{}, {x, Scales(2, 2)}, &out).ok());
  EXPECT_TRUE(std::isnan(out[0].at(13 * 24 + 13)));
  EXPECT_FALSE(std::isnan(out[0].at(2 * 24 + 2)));
  EXPECT_FALSE(std::isnan(out[0].at(22 * 24 + 22)));
}

TEST(DynamicResize, RejectsInvalidInputs) {
  const HostTensor x = HostTensor::Full(DType::kF32, {1, 2, 4, 4}, 1);
  ExpectError(DynamicResize{}, {x, HostTensor::Of(DType::kF32, {4}, {2, 1, 1, 1})},
              {"'scales'[0]: expected 1 (batch and channels), got 2"});
  ExpectError(DynamicResize{}, {x, HostTensor::Of(DType::kF32, {4}, {1, 3, 1, 1})},
              {"'scales'[1]: expected 1 (batch and channels), got 3"});
  ExpectError(DynamicResize{}, {x, Scales(0, 1)}, {"'scales'[2]: expected a positive number, got 0"});
  ExpectError(DynamicResize{}, {x, Scales(1, -1)}, {"'scales'[3]: expected a positive number, got -1"});
  ExpectError(DynamicResize{}, {x, Scales(NAN, 1)}, {"'scales'[2]: expected a positive number, got nan"});
  ExpectError(DynamicResize{}, {x, Scales(INFINITY, 1)}, {"a size that fits in 64 bits"});
  ExpectError(DynamicResize{}, {x, Scales(1e18, 1e18)}, {"expected a size that fits in 64 bits"});
  ExpectError(DynamicResize{}, {x, HostTensor::Full(DType::kF32, {2}, 2)},
              {"'scales'", "expected dimension 0 to be 4, got 2"});
  ExpectError(DynamicResize{}, {HostTensor::Full(DType::kF32, {2, 4, 4}, 1), Scales(2, 2)},
              {"'input': expected rank 4, got 3"});
  ExpectError(DynamicResize{}, {HostTensor::Full(DType::kI32, {1, 2, 4, 4}, 1), Scales(2, 2)}, {"no kernel takes"});
}

}  // namespace
}  // namespace polyop::testing

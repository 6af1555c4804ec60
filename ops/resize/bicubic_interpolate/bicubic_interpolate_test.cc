// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_interpolate/bicubic_interpolate.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class BicubicInterpolateTest : public ::testing::TestWithParam<DType> {};

TEST_P(BicubicInterpolateTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 3, 5, 7}, Shape{1, 1, 17, 1}, Shape{1, 2, 1, 33},
                             Shape{0, 3, 4, 4}, Shape{1, 0, 4, 4}}) {
    for (const auto& [v, h] : {std::pair{2.0f, 2.0f}, {1.5f, 2.5f}, {1.0f, 1.0f}, {0.5f, 3.0f}, {0.01f, 2.0f}}) {
      for (bool align : {false, true}) {
        SCOPED_TRACE(ToString(shape) + " by " + std::to_string(v) + ", " + std::to_string(h));
        ExpectMatchesReference(BicubicInterpolate{{v, h}, align}, {HostTensor::Uniform(GetParam(), shape, rng)},
                               ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BicubicInterpolateTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(BicubicInterpolate, AlignCornersKeepsCorners) {
  std::mt19937 rng(2);
  const HostTensor x = HostTensor::Uniform(DType::kF32, {1, 1, 5, 6}, rng);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(BicubicInterpolate{{2, 2}, true}, {x}, &out).ok());
  EXPECT_NEAR(out[0].at(0), x.at(0), 1e-6);
  EXPECT_NEAR(out[0].at(10 * 12 - 1), x.at(29), 1e-6);
}

TEST(BicubicInterpolate, RejectsInvalidInputs) {
  ExpectError(BicubicInterpolate{}, {HostTensor::Full(DType::kF32, {2, 4, 4}, 1)}, {"'input': expected rank 4, got 3"});
  ExpectError(BicubicInterpolate{{3e18f, 3e18f}}, {HostTensor::Full(DType::kF32, {1, 1, 4, 4}, 1)},
              {"output 'output'"});
  const Op& op = *FindOp("bicubic_interpolate");
  ExpectAttributeError(op, {{"scale_factor", AttrValue::Floats({2, 0})}},
                       {"'scale_factor': expected a number in (0, inf), got 0"});
  ExpectAttributeError(op, {{"scale_factor", AttrValue::Floats({1, 2, 3})}}, {"expected 2 values, got 3"});
  ExpectAttributeError(op, {{"scale_factor", AttrValue::String("big")}}, {"expected floats"});
}

}  // namespace
}  // namespace polyop::testing

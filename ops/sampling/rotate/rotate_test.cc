// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/rotate/rotate.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Interpolation = Rotate::Interpolation;

std::vector<HostTensor> Inputs(const Shape& shape, double angle, double x, double y, DType dtype, DType of_angle,
                               std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, shape, rng), HostTensor::Of(of_angle, {}, {angle}),
          HostTensor::Of(of_angle, {2}, {x, y})};
}

class RotateTest : public ::testing::TestWithParam<DType> {};

TEST_P(RotateTest, MatchesReference) {
  std::mt19937 rng(1);
  for (auto interpolation : {Interpolation::kBilinear, Interpolation::kNearest}) {
    for (const DType of_angle : {GetParam(), DType::kF32}) {
      for (const Shape& shape : {Shape{3, 9, 13}, Shape{1, 1, 1}, Shape{20, 33, 40}, Shape{5, 80, 70}}) {
        for (const double angle : {0.0, 30.0, -117.0, 90.0, 725.0}) {
          Tolerance tolerance = ToleranceFor(GetParam());
          tolerance.absolute *= 3;  // positions up to 100 are rounded to floats
          ExpectMatchesReference(Rotate{interpolation}, Inputs(shape, angle, 4.5, 3.25, GetParam(), of_angle, rng),
                                 tolerance);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RotateTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// A rotation by 90 degrees counter-clockwise: the right column becomes the first row.
TEST(Rotate, IsCounterClockwise) {
  const HostTensor img = HostTensor::Of(DType::kF32, {1, 2, 2}, {1, 2, 3, 4});
  const HostTensor center = HostTensor::Of(DType::kF32, {2}, {1, 1});
  for (auto interpolation : {Interpolation::kBilinear, Interpolation::kNearest}) {
    std::vector<HostTensor> out;
    ASSERT_TRUE(testing::Run(Rotate{interpolation}, {img, HostTensor::Of(DType::kF32, {1}, {90}), center}, &out).ok());
    const std::vector<double> expected = {2, 4, 1, 3};
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(out[0].at(i), expected[static_cast<size_t>(i)], 1e-6);
  }
}

TEST(Rotate, RotatesAboutTheCenter) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = Inputs({2, 8, 8}, 180, 2, 3, DType::kF32, DType::kF32, rng);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Rotate{Interpolation::kNearest}, inputs, &out).ok());
  // (row, column) comes from (5 - row, 3 - column).
  EXPECT_EQ(out[0].at(2 * 8 + 1), inputs[0].at(3 * 8 + 2));
  EXPECT_EQ(out[0].at(64 + 5 * 8 + 3), inputs[0].at(64));
  EXPECT_EQ(out[0].at(7 * 8 + 7), 0);
}

TEST(Rotate, EmptyNanAndInvalidInputs) {
  std::mt19937 rng(3);
  const auto inputs = [&](const Shape& shape, double angle, double x) {
    return Inputs(shape, angle, x, 2, DType::kF32, DType::kF32, rng);
  };
  for (const Shape& shape : {Shape{0, 4, 4}, Shape{3, 0, 4}, Shape{3, 4, 0}}) {
    ExpectMatchesReference(Rotate{}, inputs(shape, 10, 2));
  }
  for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY), 3e38}) {
    ExpectMatchesReference(Rotate{}, inputs({2, 4, 4}, 45, value));
  }
  for (const double value : {static_cast<double>(NAN), static_cast<double>(-INFINITY)}) {
    ExpectMatchesReference(Rotate{Interpolation::kNearest}, inputs({2, 4, 4}, value, 2));
  }
  std::vector<HostTensor> bad = inputs({2, 4, 4}, 45, 1);
  bad[2] = HostTensor::Full(DType::kF32, {3}, 0);
  ExpectError(Rotate{}, bad, {"'center'", "expected dimension 0 to be 2, got 3"});
  bad[2] = HostTensor::Full(DType::kF16, {2}, 0);
  ExpectError(Rotate{}, bad, {"no kernel takes"});
  ExpectAttributeError(*FindOp("rotate"), {{"interpolation", AttrValue::Int(2)}},
                       {"'interpolation': expected", "got 2"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/correlation_lookup/correlation_lookup.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Positions inside and outside of maps of this size, every third exactly on a pixel.
HostTensor Positions(const Shape& volume, std::mt19937& rng) {
  const Shape shape = {volume[0], 2, volume[1], volume[2]};
  HostTensor coords = HostTensor::Uniform(DType::kF32, shape, rng);
  const int64_t plane = volume[1] * volume[2];
  for (int64_t e = 0; e < coords.size(); ++e) {
    const auto size = static_cast<double>(volume[e / plane % 2 == 0 ? 4 : 3]);
    const double at = coords.at(e) * (size / 2 + 3) + size / 2;
    coords.set(e, e % 3 == 0 ? std::round(at) : at);
  }
  return coords;
}

class CorrelationLookupTest : public ::testing::TestWithParam<DType> {};

TEST_P(CorrelationLookupTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const CorrelationLookup op :
       {CorrelationLookup{}, {.radius = {0, 0}}, {.radius = {0, 4}}, {.radius = {3, 1}}, {.radius = {9, 20}}}) {
    for (const Shape& shape : {Shape{2, 3, 7, 9, 11}, Shape{1, 5, 13, 1, 40}, Shape{1, 1, 1, 3, 2}}) {
      SCOPED_TRACE(Concat(ToString(shape), ", radius ", op.radius[0], ", ", op.radius[1]));
      ExpectMatchesReference(op, {HostTensor::Uniform(GetParam(), shape, rng), Positions(shape, rng)},
                             ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CorrelationLookupTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The map has the value 10 * row + column, which bilinear samples reproduce.
TEST(CorrelationLookup, SamplesAPlane) {
  HostTensor volume = HostTensor::Full(DType::kF32, {1, 1, 1, 6, 8}, 0);
  for (int64_t e = 0; e < volume.size(); ++e) volume.set(e, static_cast<double>(e / 8 * 10 + e % 8));
  const HostTensor coords = HostTensor::Of(DType::kF32, {1, 2, 1, 1}, {3.25, 2.5});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(CorrelationLookup{.radius = {1, 2}}, {volume, coords}, &out).ok());
  ASSERT_EQ(out[0].shape(), (Shape{1, 15, 1, 1}));
  for (int64_t channel = 0; channel < 15; ++channel) {
    const auto right = static_cast<double>(channel / 3 - 2), down = static_cast<double>(channel % 3 - 1);
    EXPECT_FLOAT_EQ(static_cast<float>(out[0].at(channel)), static_cast<float>((2.5 + down) * 10 + 3.25 + right));
  }
}

TEST(CorrelationLookup, PositionsThatReadNothing) {
  const HostTensor volume = HostTensor::Full(DType::kF32, {1, 1, 7, 2, 3}, 1);
  const double inf = INFINITY, nan = NAN;
  const HostTensor coords =
      HostTensor::Of(DType::kF32, {1, 2, 1, 7}, {nan, inf, -inf, 1, 1e30, -1e12, 4, 1, 1, 1, nan, 1, 1, 1});
  const CorrelationLookup op{.radius = {0, 1}};
  ExpectMatchesReference(op, {volume, coords});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(op, {volume, coords}, &out).ok());
  for (int64_t e = 0; e < out[0].size(); ++e) EXPECT_EQ(out[0].at(e), 0) << e;  // 4 - 1 is beyond the last column
}

// A sample multiplies all of its pixels inside of the map, also by a weight of 0, and none outside.
TEST(CorrelationLookup, NanAndInfinity) {
  std::mt19937 rng(3);
  const Shape shape = {1, 2, 4, 5, 6};
  for (float value : {NAN, INFINITY}) {
    HostTensor volume = HostTensor::Uniform(DType::kF32, shape, rng);
    for (int64_t i = 0; i < volume.size(); i += 7) volume.set(i, static_cast<double>(value));
    ExpectMatchesReference(CorrelationLookup{.radius = {2, 1}}, {volume, Positions(shape, rng)});
  }
}

TEST(CorrelationLookup, EmptyInputs) {
  for (const Shape& shape : {Shape{0, 3, 4, 5, 6}, Shape{2, 0, 4, 5, 6}, Shape{2, 3, 4, 0, 6}, Shape{2, 3, 4, 5, 0}}) {
    ExpectMatchesReference(CorrelationLookup{}, {HostTensor::Full(DType::kF32, shape, 1),
                                                 HostTensor::Full(DType::kF32, {shape[0], 2, shape[1], shape[2]}, 1)});
  }
}

TEST(CorrelationLookup, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(CorrelationLookup{}, {f32({2, 3, 4, 5, 6}), f32({2, 2, 3, 5})},
              {"'coords'", "expected dimension 3 to be W = 4", "got 5"});
  ExpectError(CorrelationLookup{}, {f32({2, 3, 4, 5, 6}), f32({2, 1, 3, 4})}, {"'coords'", "got 1"});
  ExpectAttributeError(*FindOp("correlation_lookup"), {{"radius", AttrValue::Ints({65, 0})}},
                       {"'radius': expected", "got 65"});
}

}  // namespace
}  // namespace polyop::testing

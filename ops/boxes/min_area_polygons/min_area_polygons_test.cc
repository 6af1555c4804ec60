// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/min_area_polygons/min_area_polygons.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class MinAreaPolygonsTest : public ::testing::TestWithParam<DType> {};

TEST_P(MinAreaPolygonsTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t count : {1, 7, 300}) {
    for (double extent : {1.0, 100.0}) {
      ExpectMatchesReference(MinAreaPolygons{}, {HostTensor::Uniform(GetParam(), {count, 18}, rng, -extent, extent)},
                             ToleranceFor(GetParam()));
    }
  }
}

// On a lattice many rectangles have the same area, and points are equal or collinear.
TEST_P(MinAreaPolygonsTest, PrefersTheSmallestAngle) {
  std::mt19937 rng(2);
  HostTensor sets = HostTensor::Uniform(GetParam(), {500, 18}, rng, 0, 4);
  for (int64_t i = 0; i < sets.size(); ++i) sets.set(i, std::floor(sets.at(i)) * (i / 18 % 3 == 0 && i % 2 ? 0 : 1));
  ExpectMatchesReference(MinAreaPolygons{}, {sets}, ToleranceFor(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Types, MinAreaPolygonsTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> Around(const std::vector<double>& points) {
  std::vector<double> set;
  while (set.size() < 18) set.push_back(points[set.size() % points.size()]);
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(MinAreaPolygons{}, {HostTensor::Of(DType::kF32, {1, 18}, set)}, &out).ok());
  std::vector<double> corners;
  for (int64_t i = 0; i < 8; ++i) corners.push_back(out[0].at(i));
  return corners;
}

TEST(MinAreaPolygons, KnownRectangles) {
  using Row = std::vector<double>;
  EXPECT_EQ(Around({0, 0, 4, 0, 4, 2, 0, 2, 1, 1}), (Row{4, 0, 0, 0, 0, 2, 4, 2}));
  EXPECT_EQ(Around({0, 2, 4, 2, 4, 0, 0, 0}), (Row{4, 0, 0, 0, 0, 2, 4, 2}));  // the opposite orientation
  EXPECT_EQ(Around({2, 0, 4, 2, 2, 4, 0, 2}), (Row{4, 2, 2, 0, 0, 2, 2, 4}));  // by 45 degrees
  EXPECT_EQ(Around({0, 0, 4, 0, 2, 2}), (Row{4, 0, 0, 0, 0, 2, 4, 2}));        // 4 x 2 twice: at 0 and 45 degrees
  EXPECT_EQ(Around({3, 1, 3, 5}), (Row{3, 1, 3, 1, 3, 5, 3, 5}));              // a line
  EXPECT_EQ(Around({3, 1}), (Row{3, 1, 3, 1, 3, 1, 3, 1}));                    // a point
  EXPECT_EQ(Around({1e6, 1e6, 1e6 + 1, 1e6}), (Row{1e6 + 1, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6 + 1, 1e6}));
}

TEST(MinAreaPolygons, NanInfinityAndLimitsOfTheType) {
  for (float value : {NAN, INFINITY, -INFINITY}) {
    for (double corner : Around({0, 0, 4, 0, static_cast<double>(value), 2})) EXPECT_TRUE(std::isnan(corner));
  }
  ExpectMatchesReference(MinAreaPolygons{}, {HostTensor::Full(DType::kF32, {0, 18}, 0)});
  std::mt19937 rng(4);
  for (double extent : {3e37, 1e-37}) {
    HostTensor sets = HostTensor::Uniform(DType::kF32, {20, 18}, rng, 0, 1), scaled(DType::kF32, {20, 18});
    for (int64_t i = 0; i < sets.size(); ++i) scaled.set(i, sets.at(i) * extent);
    std::vector<HostTensor> plain, result;
    ASSERT_TRUE(testing::Run(MinAreaPolygons{}, {sets}, &plain).ok());
    ASSERT_TRUE(testing::Run(MinAreaPolygons{}, {scaled}, &result).ok());
    for (int64_t i = 0; i < plain[0].size(); ++i) EXPECT_NEAR(result[0].at(i) / extent, plain[0].at(i), 1e-5) << extent;
  }
}

TEST(MinAreaPolygons, RejectsInvalidInputs) {
  ExpectError(MinAreaPolygons{}, {HostTensor::Full(DType::kF32, {3, 16}, 0)},
              {"'pointsets'", "expected dimension 1 to be 18, got 16"});
  ExpectError(MinAreaPolygons{}, {HostTensor::Full(DType::kI32, {3, 18}, 0)}, {"no kernel takes inputs (i32[3, 18])"});
}

}  // namespace
}  // namespace polyop::testing

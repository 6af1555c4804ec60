// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/points_in_polygons/points_in_polygons.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<double> Inside(const std::vector<double>& points, const std::vector<double>& polygon) {
  std::vector<HostTensor> out;
  const auto count = static_cast<int64_t>(points.size() / 2), coordinates = static_cast<int64_t>(polygon.size());
  const Status status = testing::Run(
      PointsInPolygons{},
      {HostTensor::Of(DType::kF32, {count, 2}, points), HostTensor::Of(DType::kF32, {1, coordinates}, polygon)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(PointsInPolygons, SidesAndCornersAreOutside) {
  const std::vector<double> points = {1, 1, 0, 0, 1, 0, 0, 1, 2, 1, 1, 2, 2, 2, -1, 1, 3, 1, 0.5, 1.5};
  const std::vector<double> expected = {1, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(Inside(points, {0, 0, 2, 0, 2, 2, 0, 2}), expected);
  EXPECT_EQ(Inside(points, {0, 2, 2, 2, 2, 0, 0, 0}), expected);  // in the opposite orientation
}

TEST(PointsInPolygons, AnyPolygon) {
  EXPECT_EQ(Inside({1, 0.5, 0.2, 1}, {0, 0, 2, 0, 1, 2}), (std::vector<double>{1, 0}));  // a triangle
  // A notch from above: the point in it is outside, the points next to it are inside.
  EXPECT_EQ(Inside({2, 3, 0.5, 3, 3.5, 3, 2, 0.5}, {0, 0, 4, 0, 4, 4, 2, 1, 0, 4}), (std::vector<double>{0, 1, 1, 1}));
  // A self-intersecting polygon: the number of sides to the right of its centre is even.
  EXPECT_EQ(Inside({0, 0, 0, 0.9}, {0, 1, 0.59, -0.81, -0.95, 0.31, 0.95, 0.31, -0.59, -0.81}),
            (std::vector<double>{0, 1}));
  EXPECT_EQ(Inside({1, 1, 3, 1}, {0, 0, 0, 0, 4, 4, 4, 4}), (std::vector<double>{0, 0}));  // no area
}

TEST(PointsInPolygons, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (int round = 0; round < Rounds(80); ++round) {
    const DType dtype = kTypes[rng() % 3];
    const int64_t corners = 3 + static_cast<int64_t>(rng() % 5), count = rng() % 40;
    HostTensor points = HostTensor::Uniform(dtype, {static_cast<int64_t>(rng() % 90), 2}, rng, -3, 3);
    HostTensor polygons = HostTensor::Uniform(dtype, {count, 2 * corners}, rng, -3, 3);
    const bool on_sides = rng() % 2;
    for (int64_t i = 0; on_sides && i < points.size(); ++i) points.set(i, std::floor(points.at(i)));
    for (int64_t i = 0; on_sides && i < polygons.size(); ++i) polygons.set(i, std::floor(polygons.at(i)));
    SCOPED_TRACE(Concat("round ", round, ": ", count, " polygons of ", corners, " corners"));
    ExpectMatchesReference(PointsInPolygons{}, {points, polygons});
  }
}

TEST(PointsInPolygons, HugeCoordinates) {
  // The point is left of all corners but one, and the rounding errors of the other products would hide its side.
  const std::vector<double> point = {0, 0.0559}, polygon = {0, 29952, 1e13, 1e-38, 3, -1e20, 1e-38, 2, 3, 4, 3, 1};
  EXPECT_EQ(Inside(point, polygon), std::vector<double>{0});
  ExpectMatchesReference(PointsInPolygons{},
                         {HostTensor::Of(DType::kF32, {1, 2}, point), HostTensor::Of(DType::kF32, {1, 12}, polygon)});
}

TEST(PointsInPolygons, ManyPointsInParallel) {
  std::mt19937 rng(2);
  ExpectMatchesReference(PointsInPolygons{}, {HostTensor::Uniform(DType::kF32, {20000, 2}, rng, -3, 3),
                                              HostTensor::Uniform(DType::kF32, {21, 8}, rng, -3, 3)});
}

TEST(PointsInPolygons, NanAndInfinityAreOutside) {
  for (float value : {NAN, INFINITY, -INFINITY}) {
    for (size_t k = 0; k < 8; ++k) {
      std::vector<double> square = {0, 0, 2, 0, 2, 2, 0, 2};
      square[k] = static_cast<double>(value);
      EXPECT_EQ(Inside({1, 1, 0.5, 1.25}, square), (std::vector<double>{0, 0})) << k << ": " << value;
    }
    const double number = static_cast<double>(value);
    EXPECT_EQ(Inside({number, 1, 1, number}, {0, 0, 2, 0, 2, 2, 0, 2}), (std::vector<double>{0, 0})) << value;
  }
}

TEST(PointsInPolygons, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(PointsInPolygons{}, {f32({5, 3}), f32({4, 8})}, {"'points'", "expected dimension 1 to be 2, got 3"});
  ExpectError(PointsInPolygons{}, {f32({5, 2}), f32({4, 7})},
              {"'polygons': expected x and y of at least 3 corners in a row, got 7 values"});
  ExpectError(PointsInPolygons{}, {f32({5, 2}), f32({4, 4})}, {"at least 3 corners in a row, got 4 values"});
}

}  // namespace
}  // namespace polyop::testing

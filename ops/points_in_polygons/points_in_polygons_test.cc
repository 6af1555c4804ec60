#include "ops/points_in_polygons/points_in_polygons.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<double> Inside(const std::vector<double>& points, const std::vector<double>& polygon) {
  std::vector<HostTensor> out;
  const auto count = static_cast<int64_t>(points.size() / 2), numbers = static_cast<int64_t>(polygon.size());
  const Status status = testing::Run(
      PointsInPolygons{},
      {HostTensor::Of(DType::kF32, {count, 2}, points), HostTensor::Of(DType::kF32, {1, numbers}, polygon)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(PointsInPolygons, SidesAndCornersAreOutside) {
  const std::vector<double> points = {1, 1, 0, 0, 1, 0, 0, 1, 2, 1, 1, 2, 2, 2, -1, 1, 3, 1, 0.5, 1.5};
  const std::vector<double> want = {1, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(Inside(points, {0, 0, 2, 0, 2, 2, 0, 2}), want);
  EXPECT_EQ(Inside(points, {0, 2, 2, 2, 2, 0, 0, 0}), want);  // in the other sense
}

TEST(PointsInPolygons, AnyPolygon) {
  EXPECT_EQ(Inside({1, 0.5, 0.2, 1}, {0, 0, 2, 0, 1, 2}), (std::vector<double>{1, 0}));  // a triangle
  // A notch from above: the point within it is outside, those at its sides are inside.
  EXPECT_EQ(Inside({2, 3, 0.5, 3, 3.5, 3, 2, 0.5}, {0, 0, 4, 0, 4, 4, 2, 1, 0, 4}), (std::vector<double>{0, 1, 1, 1}));
  // Crossing itself twice around its middle: the number of sides to the right is even there.
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

TEST(PointsInPolygons, HugeNumbers) {
  // Left of all corners but one, whose side the products of the others' numbers would hide.
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

TEST(PointsInPolygonsErrors, SayWhatIsWrong) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(PointsInPolygons{}, {f32({5, 3}), f32({4, 8})}, {"'points'", "dimension 1 is 3, wanted 2"});
  ExpectError(PointsInPolygons{}, {f32({5, 2}), f32({4, 7})}, {"'polygons' has 7 numbers a row", "3 corners"});
  ExpectError(PointsInPolygons{}, {f32({5, 2}), f32({4, 4})}, {"'polygons' has 4 numbers a row"});
}

}  // namespace
}  // namespace polyop::testing

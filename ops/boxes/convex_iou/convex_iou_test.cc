// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/convex_iou/convex_iou.h"

#include <cmath>

#include "testing/random_quadrilaterals.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Sets of nine points, each around a position in a square of side `extent`; some points are equal or collinear.
HostTensor RandomSets(DType type, int64_t count, double extent, std::mt19937& rng) {
  std::uniform_real_distribution<double> part(0, 1);
  HostTensor sets(type, {count, 18});
  for (int64_t i = 0; i < count; ++i) {
    const double x = part(rng) * extent, y = part(rng) * extent;
    const uint32_t kind = rng() % 6;
    for (int64_t p = 0; p < 9; ++p) {
      const double dx = part(rng) * 6, dy = kind == 0 ? dx / 2 : part(rng) * 6;
      sets.set(18 * i + 2 * p, kind == 1 ? std::floor(x) + std::floor(dx) : x + dx);
      sets.set(18 * i + 2 * p + 1, kind == 1 ? std::floor(y) + std::floor(dy) : y + dy);
    }
  }
  return sets;
}

class ConvexIouTest : public ::testing::TestWithParam<DType> {};

TEST_P(ConvexIouTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(30); ++round) {
    const int64_t rows = rng() % 40, columns = rng() % 70;
    const double extent = rng() % 2 ? 6 : 40;
    SCOPED_TRACE(Concat("round ", round, ": ", rows, " x ", columns, ", extent ", extent));
    ExpectMatchesReference(
        ConvexIou{},
        {RandomSets(GetParam(), rows, extent, rng), RandomQuadrilaterals(GetParam(), {columns, 8}, extent, rng)},
        ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ConvexIouTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

double Measure(const std::vector<double>& points, const std::vector<double>& quadrilateral) {
  std::vector<double> set;
  while (set.size() < 18) set.push_back(points[set.size() % points.size()]);
  std::vector<HostTensor> out;
  const Status status = testing::Run(
      ConvexIou{}, {HostTensor::Of(DType::kF32, {1, 18}, set), HostTensor::Of(DType::kF32, {1, 8}, quadrilateral)},
      &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].at(0) : NAN;
}

TEST(ConvexIou, KnownHulls) {
  const std::vector<double> square = {0, 0, 4, 0, 4, 4, 0, 4};
  EXPECT_EQ(Measure({1, 1, 0, 0, 4, 4, 2, 3, 4, 0, 0, 4}, square), 1);  // two inner points
  EXPECT_EQ(Measure({0, 0, 4, 0, 0, 4}, square), 0.5);
  EXPECT_EQ(Measure({0, 0, 2, 2, 4, 4}, square), 0);                      // a line
  EXPECT_EQ(Measure({1, 1}, square), 0);                                  // a point
  EXPECT_EQ(Measure({0, 0, 4, 0, 0, 4}, {0, 0, 4, 4, 4, 0, 0, 4}), 0.5);  // crossing sides: its hull counts
  EXPECT_EQ(Measure({0, 0, 4, 0, 0, 4, NAN, 1}, square), 0);
  EXPECT_EQ(Measure({0, 0, 4, 0, 0, 4, 1, INFINITY}, square), 0);
}

TEST(ConvexIou, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(ConvexIou{}, {f32({3, 8}), f32({3, 8})}, {"'pointsets'", "expected dimension 1 to be 18, got 8"});
  ExpectError(ConvexIou{}, {f32({3, 18}), f32({3, 5})}, {"'polygons'", "expected dimension 1 to be 8, got 5"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/convex_giou/convex_giou.h"

#include <cmath>

#include "testing/random_quadrilaterals.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Row = std::vector<double>;

class ConvexGiouTest : public ::testing::TestWithParam<DType> {};

TEST_P(ConvexGiouTest, MatchesReference) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> part(0, 1);
  for (int round = 0; round < Rounds(20); ++round) {
    const int64_t rows = rng() % 60;
    const double extent = rng() % 2 ? 4 : 20;
    HostTensor sets(GetParam(), {rows, 18});
    for (int64_t i = 0; i < rows; ++i) {
      const double x = part(rng) * extent, y = part(rng) * extent;
      for (int64_t k = 0; k < 18; ++k) sets.set(18 * i + k, (k % 2 ? y : x) + part(rng) * 6);
      if (rng() % 3 == 0) sets.set(18 * i + 4, sets.at(18 * i)), sets.set(18 * i + 5, sets.at(18 * i + 1));
    }
    SCOPED_TRACE(Concat("round ", round, ": ", rows, " rows, extent ", extent));
    ExpectMatchesReference(ConvexGiou{}, {sets, RandomQuadrilaterals(GetParam(), {rows, 8}, extent, rng)},
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ConvexGiouTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Returns the gradient with respect to `points`, which are repeated to fill a set of nine, and the GIoU.
Row Measure(const Row& points, const Row& quadrilateral) {
  Row set;
  while (set.size() < 18) set.push_back(points[set.size() % points.size()]);
  const std::vector<HostTensor> inputs = {HostTensor::Of(DType::kF32, {1, 18}, set),
                                          HostTensor::Of(DType::kF32, {1, 8}, quadrilateral)};
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(ConvexGiou{}, inputs, &out).ok());
  ExpectMatchesReference(ConvexGiou{}, inputs);
  Row row = out[0].ToDoubles();
  for (size_t k = points.size(); k < 18; ++k) EXPECT_EQ(row[k], 0) << k;  // repetitions of the same points
  row.erase(row.begin() + static_cast<int64_t>(points.size()), row.begin() + 18);
  return row;
}

TEST(ConvexGiou, KnownHulls) {
  const Row square = {0, 0, 4, 0, 4, 4, 0, 4};
  EXPECT_EQ(Measure({0, 0, 4, 0, 4, 4, 0, 4}, square), (Row{0, 0, 0, 0, 0, 0, 0, 0, 1}));
  // Within: the IoU is 4 / 16, and its derivative by the area 1 / 16.
  EXPECT_EQ(Measure({1, 1, 3, 1, 3, 3, 1, 3}, square),
            (Row{-1 / 16.0, -1 / 16.0, 1 / 16.0, -1 / 16.0, 1 / 16.0, 1 / 16.0, -1 / 16.0, 1 / 16.0, 0.25}));
  // Apart: U = 20, C = 28; the GIoU grows as the near side approaches.
  const Row apart = Measure({6, 0, 8, 0, 8, 2, 6, 2}, square);
  EXPECT_NEAR(apart.back(), -(28 - 20) / 28.0, 1e-6);
  EXPECT_LT(apart[0], 0);
  EXPECT_LT(apart[6], 0);
  EXPECT_EQ(Measure({1, 1, 2, 2, 3, 3}, square).back(), 0);                 // a line has no area
  EXPECT_EQ(Measure({0, 0, 4, 4}, {1, 1, 2, 2, 3, 3, 5, 5}), (Row(5, 0)));  // the hull of both has no area
  EXPECT_EQ(Measure({0, 0, 4, 4}, {0, 4, 4, 0, 0, 4, 4, 0}), (Row{0, 0, 0, 0, -1}));
}

TEST(ConvexGiou, CoincidentSides) {
  const Row square = {0, 0, 4, 0, 4, 4, 0, 4};
  Measure({1, 0, 3, 0, 3, 2, 1, 2}, square);    // on its lower side, inside
  Measure({1, -2, 3, -2, 3, 0, 1, 0}, square);  // on its lower side, outside
  Measure({0, 0, 2, 0, 4, 0, 0, 4}, square);    // three of its corners, and a point between two
}

TEST(ConvexGiou, NanAndInfinity) {
  for (float value : {NAN, INFINITY}) {
    std::vector<HostTensor> out;
    Row set(18), quadrilateral = {0, 0, 4, 0, 4, 4, 0, 4};
    set[5] = static_cast<double>(value);
    ASSERT_TRUE(
        testing::Run(ConvexGiou{},
                     {HostTensor::Of(DType::kF32, {1, 18}, set), HostTensor::Of(DType::kF32, {1, 8}, quadrilateral)},
                     &out)
            .ok());
    for (double v : out[0].ToDoubles()) EXPECT_TRUE(std::isnan(v));
  }
}

TEST(ConvexGiou, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(ConvexGiou{}, {f32({3, 18}), f32({2, 8})}, {"'polygons'", "expected dimension 0 to be N = 3", "got 2"});
  ExpectError(ConvexGiou{}, {f32({3, 8}), f32({3, 8})}, {"'pointsets'", "expected dimension 1 to be 18, got 8"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/diff_iou_rotated_sort_vertices/diff_iou_rotated_sort_vertices.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class SortVerticesTest : public ::testing::TestWithParam<DType> {};

// On a lattice, many angles are equal and some vertices are at the origin.
TEST_P(SortVerticesTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(20); ++round) {
    const bool lattice = rng() % 2 == 0;
    const int64_t batches = rng() % 3, pairs = rng() % 40;
    HostTensor vertices = HostTensor::Uniform(GetParam(), {batches, pairs, 24, 2}, rng, -3, 3);
    HostTensor mask(DType::kBool, {batches, pairs, 24}), count(DType::kI32, {batches, pairs});
    for (int64_t i = 0; lattice && i < vertices.size(); ++i) vertices.set(i, std::floor(vertices.at(i)));
    const uint32_t share = 2 + rng() % 4;
    for (int64_t i = 0; i < count.size(); ++i) {
      int64_t valid = 0;
      for (int64_t k = 0; k < 24; ++k) {
        mask.set(24 * i + k, rng() % share == 0);
        valid += mask.at(24 * i + k) != 0;
      }
      count.set(i, static_cast<double>(rng() % 4 == 0 ? rng() % 12 : valid));
    }
    SCOPED_TRACE(Concat("round ", round, ": ", batches, " x ", pairs));
    ExpectMatchesReference(DiffIouRotatedSortVertices{}, {vertices, mask, count}, ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SortVerticesTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

using Row = std::vector<double>;

// Returns the order of a pair with these vertices, all of which are valid.
Row Sorted(const Row& points, double count) {
  Row vertices = points, mask(points.size() / 2, 1);
  vertices.resize(48);
  mask.resize(24);
  std::vector<HostTensor> out;
  EXPECT_TRUE(
      testing::Run(DiffIouRotatedSortVertices{},
                   {HostTensor::Of(DType::kF32, {1, 1, 24, 2}, vertices),
                    HostTensor::Of(DType::kBool, {1, 1, 24}, mask), HostTensor::Of(DType::kI32, {1, 1}, {count})},
                   &out)
          .ok());
  return out[0].ToDoubles();
}

TEST(DiffIouRotatedSortVertices, KnownOrders) {
  EXPECT_EQ(Sorted({-1, -1, 1, 1, -1, 1, 1, -1}, 4), (Row{1, 2, 0, 3, 1, 8, 8, 8, 8}));
  EXPECT_EQ(Sorted({-2, 0, 0, -1, 3, 0, 0, 1, -1, 0}, 5),
            (Row{2, 3, 0, 4, 1, 2, 8, 8, 8}));  // equal angles stay in order
  EXPECT_EQ(Sorted({1, 1, -1, 1}, 2), Row(9, 8));
  EXPECT_EQ(Sorted({}, 0), Row(9, 8));
  EXPECT_EQ(Sorted({0, -1, 0, 1, 0, 0, -0.0, -0.0}, 4), (Row{2, 3, 1, 0, 2, 8, 8, 8, 8}));
  Row ten;  // clockwise
  for (int i = 10; i > 0; --i) {
    ten.push_back(std::cos(i * 0.6));
    ten.push_back(std::sin(i * 0.6));
  }
  EXPECT_EQ(Sorted(ten, 10), (Row{9, 8, 7, 6, 5, 4, 3, 2, 9}));
}

TEST(DiffIouRotatedSortVertices, InvalidVertices) {
  const double nan = NAN, inf = INFINITY;
  EXPECT_EQ(Sorted({nan, 1, 0, 1, 1, inf, 1, 0, -1, 0}, 5), (Row{3, 1, 4, 0, 2, 3, 8, 8, 8}));
  EXPECT_EQ(Sorted({1, 0, 0, 1}, -5), Row(9, 8));
  EXPECT_EQ(Sorted({0, 1, 1, 0}, 4), (Row{1, 0, 2, 3, 1, 8, 8, 8, 8}));  // more than the mask marks
}

TEST(DiffIouRotatedSortVertices, RejectsInvalidInputs) {
  const HostTensor mask(DType::kBool, {2, 3, 24}), count(DType::kI32, {2, 3});
  const auto vertices = [](int64_t count_of_vertices) {
    return HostTensor::Full(DType::kF32, {2, 3, count_of_vertices, 2}, 1);
  };
  ExpectError(DiffIouRotatedSortVertices{}, {vertices(16), mask, count},
              {"'vertices'", "expected dimension 2 to be 24, got 16"});
  ExpectError(DiffIouRotatedSortVertices{}, {vertices(24), mask, HostTensor(DType::kI32, {2, 4})},
              {"'num_valid'", "expected dimension 1 to be N = 3", "got 4"});
}

}  // namespace
}  // namespace polyop::testing

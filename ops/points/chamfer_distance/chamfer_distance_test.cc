// SPDX-License-Identifier: Apache-2.0
#include "ops/points/chamfer_distance/chamfer_distance.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class ChamferDistanceTest : public ::testing::TestWithParam<DType> {};

// On a lattice, many points are at equal distances.
TEST_P(ChamferDistanceTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(10); ++round) {
    const bool lattice = rng() % 3 == 0;
    const int64_t batches = rng() % 4, coordinates = 2 + rng() % 2;
    const auto cloud = [&] {
      const int64_t points = 1 + rng() % (rng() % 2 ? 5 : 200);
      HostTensor t = HostTensor::Uniform(GetParam(), {batches, points, coordinates}, rng, -3, 3);
      for (int64_t i = 0; lattice && i < t.size(); ++i) t.set(i, std::floor(t.at(i)));
      return t;
    };
    const std::vector<HostTensor> inputs = {cloud(), cloud()};
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(inputs[0].shape()), ", ", ToString(inputs[1].shape())));
    ExpectMatchesReference(ChamferDistance{}, inputs, ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ChamferDistanceTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(ChamferDistance, LargeClouds) {
  std::mt19937 rng(2);
  ExpectMatchesReference(ChamferDistance{}, {HostTensor::Uniform(DType::kF32, {1, 700, 2}, rng),
                                             HostTensor::Uniform(DType::kF32, {1, 5000, 2}, rng)});
}

using Row = std::vector<double>;

std::vector<Row> Distances(const Row& a, const Row& b) {
  const auto cloud = [](const Row& row) {
    return HostTensor::Of(DType::kF32, {1, static_cast<int64_t>(row.size() / 2), 2}, row);
  };
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(ChamferDistance{}, {cloud(a), cloud(b)}, &out).ok());
  std::vector<Row> rows;
  for (const HostTensor& t : out) rows.push_back(t.ToDoubles());
  return rows;
}

TEST(ChamferDistance, KnownClouds) {
  EXPECT_EQ(Distances({0, 0, 3, 4}, {3, 3, 0, 1, 0, -1}), (std::vector<Row>{{1, 1}, {1, 1, 1}, {1, 0}, {1, 0, 0}}));
}

TEST(ChamferDistance, NonFiniteCoordinates) {
  const double nan = NAN, inf = INFINITY;
  EXPECT_EQ(Distances({nan, 0, 7, 0, inf, 0}, {0, 0, 9, -inf}),
            (std::vector<Row>{{inf, 49, inf}, {49, inf}, {0, 0, 0}, {1, 0}}));
}

TEST(ChamferDistance, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(ChamferDistance{}, {f32({2, 5, 4}), f32({2, 6, 4})},
              {"'xyz1': expected points of 2 or 3 coordinates, got 4"});
  ExpectError(ChamferDistance{}, {f32({2, 5, 2}), f32({2, 6, 3})},
              {"'xyz2'", "expected dimension 2 to be D = 2", "got 3"});
  ExpectError(ChamferDistance{}, {f32({2, 5, 2}), f32({2, 0, 2})},
              {"'xyz2': expected at least 1 point, because 'xyz1' has points; got 0"});
  ExpectError(ChamferDistance{}, {f32({2, 0, 2}), f32({2, 5, 2})},
              {"'xyz1': expected at least 1 point, because 'xyz2' has points; got 0"});
}

}  // namespace
}  // namespace polyop::testing

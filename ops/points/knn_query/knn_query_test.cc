// SPDX-License-Identifier: Apache-2.0
#include "ops/points/knn_query/knn_query.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor I32(const std::vector<double>& values) {
  return HostTensor::Of(DType::kI32, {static_cast<int64_t>(values.size())}, values);
}
HostTensor Scalar(double value) { return HostTensor::Of(DType::kI64, {}, {value}); }
HostTensor Points(const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, {static_cast<int64_t>(values.size() / 3), 3}, values);
}
HostTensor Cloud(int64_t points, std::mt19937& rng, double low = -1, double high = 1) {
  return HostTensor::Uniform(DType::kF32, {points, 3}, rng, low, high);
}

TEST(KnnQuery, FindsNeighboursOfTheSameSegment) {
  std::vector<HostTensor> out;
  const HostTensor xyz = Points({0, 0, 0, 1, 0, 0, 5, 0, 0, 0.5, 0, 0, 0, 3, 0});
  ASSERT_TRUE(
      polyop::testing::Run(KnnQuery{}, {Scalar(3), xyz, I32({3, 5}), Points({0.9, 0, 0, 0, 0, 4}), I32({1, 2})}, &out)
          .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{1, 0, 2, 3, 4, -1}));
  EXPECT_NEAR(out[1].at(0), 0.1, 1e-6);
  EXPECT_NEAR(out[1].at(2), 4.1, 1e-6);
  EXPECT_EQ(out[1].at(4), 5);
  EXPECT_EQ(out[1].at(5), 1e5);
}

TEST(KnnQuery, PointsAreTheQueriesByDefault) {
  std::mt19937 rng(1);
  ExpectMatchesReference(KnnQuery{}, {Scalar(5), Cloud(333, rng), I32({100, 100, 333})}, {1e-6, 0});
  ExpectMatchesReference(KnnQuery{}, {Scalar(1), Cloud(40, rng), I32({40}), {}, {}}, {0, 0});
}

TEST(KnnQuery, EveryMixOfIntegerTypes) {
  std::mt19937 rng(2);
  for (DType k : {DType::kI32, DType::kI64}) {
    for (DType i : {DType::kI32, DType::kI64}) {
      for (DType j : {DType::kI32, DType::kI64}) {
        ExpectMatchesReference(KnnQuery{},
                               {HostTensor::Full(k, {1}, 3), Cloud(50, rng), HostTensor::Of(i, {2}, {20, 50}),
                                Cloud(9, rng), HostTensor::Of(j, {2}, {4, 9})},
                               {1e-6, 0});
      }
    }
  }
}

// Kinds of clouds on which a naive search is wrong or slow.
HostTensor OddCloud(int kind, int64_t count, std::mt19937& rng) {
  HostTensor xyz = Cloud(count, rng);
  for (int64_t i = 0; i < count; ++i) {
    const auto set = [&](double x, double y, double z) {
      xyz.set(3 * i, x);
      xyz.set(3 * i + 1, y);
      xyz.set(3 * i + 2, z);
    };
    const double t = xyz.at(3 * i), u = xyz.at(3 * i + 1), v = xyz.at(3 * i + 2);
    switch (kind) {
      case 1: set(std::floor(t * 3), std::floor(u * 3), std::floor(v * 3)); break;  // a lattice: ties, duplicates
      case 2: set(0.3, 0.3, 0.3); break;                                            // all the same
      case 3: set(t, 2 * t, -t); break;                                             // on a line
      case 4: set(t, 0, u); break;                                                  // in a plane
      case 5: set(std::pow(10, 12 * t), std::pow(10, 12 * u), v); break;            // clusters in clusters
      case 6:
        if (rng() % 4 == 0) set(t, rng() % 2 ? NAN : INFINITY, v);
        break;
      case 7: set(t * 1e30, u * 1e30, v * 1e30); break;     // squares overflow fp32
      case 8: set(t * 1e-30, u * 1e-30, v * 1e-30); break;  // and underflow
      case 9: set(t * 3e38, u * 3e38, -v * 3e38); break;
      case 10: set(1000 + std::floor(t * 100) / 4096, 1000, 1000 + u / 4096); break;  // far from the origin
      case 11: set(std::abs(t) < 0.5 ? 0.0 : -0.0, i % 3 ? 0.1 : 0.2, i % 3 ? 0.2 : 0.1); break;
      default: break;
    }
  }
  return xyz;
}

TEST(KnnQuery, RandomCloudsOfEveryKind) {
  std::mt19937 rng(3);
  for (int round = 0; round < Rounds(240); ++round) {
    const int kind = round % 12;
    const int64_t segments = 1 + rng() % 4;
    std::vector<double> ends, query_ends;
    int64_t points = 0, queries = 0;
    for (int64_t s = 0; s < segments; ++s) {
      ends.push_back(static_cast<double>(points += rng() % 4 == 0 ? rng() % 9 : rng() % 300));
      query_ends.push_back(static_cast<double>(queries += rng() % 20));
    }
    const HostTensor xyz = OddCloud(kind, points, rng);
    HostTensor new_xyz = OddCloud(kind, queries, rng);
    for (int64_t i = 0; points > 0 && i < queries; i += 3) {  // some queries are points
      for (int64_t c = 0, p = static_cast<int64_t>(rng() % static_cast<uint64_t>(points)); c < 3; ++c) {
        new_xyz.set(3 * i + c, xyz.at(3 * p + c));
      }
    }
    const double samples[] = {1, 2, 5, 16, 64, 65, 100, 350};
    SCOPED_TRACE(Concat("round ", round, ", kind ", kind, ", ", points, " points, ", queries, " queries"));
    ExpectMatchesReference(KnnQuery{}, {Scalar(samples[rng() % 8]), xyz, I32(ends), new_xyz, I32(query_ends)},
                           {1e-6, 0});
  }
}

// Large enough for parallel parts of the tree.
TEST(KnnQuery, LargeClouds) {
  std::mt19937 rng(4);
  for (int kind : {0, 1, 5, 6}) {
    ExpectMatchesReference(
        KnnQuery{},
        {Scalar(16), OddCloud(kind, 30000, rng), I32({9000, 30000}), OddCloud(kind, 60, rng), I32({20, 60})},
        {1e-6, 0});
  }
}

// Quadratic run time on duplicates would take minutes.
TEST(KnnQuery, DuplicatesAreFound) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(polyop::testing::Run(KnnQuery{},
                                   {Scalar(4), HostTensor::Full(DType::kF32, {200000, 3}, 0.5), I32({200000})}, &out)
                  .ok());
  for (int64_t q = 0; q < 200000; q += 777) {
    for (int64_t k = 0; k < 4; ++k) ASSERT_EQ(out[0].at(q * 4 + k), static_cast<double>(k));
  }
}

TEST(KnnQuery, EmptyInputs) {
  std::mt19937 rng(5);
  ExpectMatchesReference(KnnQuery{}, {Scalar(3), Points({}), I32({}), {}, {}});
  ExpectMatchesReference(KnnQuery{}, {Scalar(3), Points({}), I32({0, 0}), {}, {}});
  ExpectMatchesReference(KnnQuery{}, {Scalar(3), Points({}), I32({0}), Cloud(5, rng), I32({5})});
  ExpectMatchesReference(KnnQuery{}, {Scalar(3), Cloud(5, rng), I32({5}), Points({}), I32({0})});
}

TEST(KnnQuery, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const HostTensor xyz = Cloud(10, rng), queries = Cloud(4, rng), none;
  const auto error = [&](double nsample, const HostTensor& offset, const HostTensor& new_xyz,
                         const HostTensor& new_offset, const std::vector<std::string>& parts) {
    ExpectError(KnnQuery{}, {Scalar(nsample), xyz, offset, new_xyz, new_offset}, parts);
  };
  error(0, I32({10}), none, none, {"'nsample': expected at least 1, got 0"});
  error(-2, I32({10}), none, none, {"'nsample': expected at least 1, got -2"});
  error(9e18, I32({10}), none, none, {"expected a size that fits in 64 bits"});
  error(3, I32({4, 2, 10}), none, none, {"'offset'[1]: expected at least 4, the previous end, got 2"});
  error(3, I32({-1, 10}), none, none, {"'offset'[0]: expected at least 0, got -1"});
  error(3, I32({4, 12, 10}), none, none, {"'offset'[1]: expected at most n = 10, got 12"});
  error(3, I32({4, 9}), none, none, {"'offset': expected the last end to be n = 10, got 9"});
  error(3, I32({}), none, none, {"'offset': expected the last end to be n = 10, got 0"});
  error(3, I32({10}), queries, I32({5}), {"'new_offset'[0]: expected at most m = 4, got 5"});
  error(3, I32({10}), queries, I32({3}), {"'new_offset': expected the last end to be m = 4, got 3"});
  error(3, I32({5, 10}), queries, I32({3, 2}), {"'new_offset'[1]: expected at least 3, the previous end, got 2"});
  error(3, I32({5, 10}), queries, I32({4}), {"'new_offset'", "to be b = 2", "(shape [1] for"});
  error(3, I32({10}), queries, none, {"expected both or neither, got only 'new_xyz'"});
  error(3, I32({10}), none, I32({10}), {"expected both or neither, got only 'new_offset'"});
  ExpectError(KnnQuery{}, {Scalar(3), HostTensor::Full(DType::kF32, {10, 4}, 0), I32({10})},
              {"'xyz'", "(shape [10, 4] for"});
  ExpectError(KnnQuery{}, {I32({3, 3}), xyz, I32({10})}, {"'nsample': expected a scalar, got shape [2]"});
  ExpectError(KnnQuery{}, {Scalar(3), xyz.Cast(DType::kF16), I32({10})}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing

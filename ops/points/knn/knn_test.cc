// SPDX-License-Identifier: Apache-2.0
#include "ops/points/knn/knn.h"

#include <cmath>
#include <ctime>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

Knn Nearest(int64_t k, bool transposed = false) {
  Knn op;
  op.k = k;
  op.transposed = transposed;
  return op;
}

// Includes equal points and points of a lattice, whose distances are tied.
HostTensor Clouds(DType dtype, int64_t batches, int64_t points, std::mt19937& rng, bool lattice, bool transposed) {
  HostTensor t =
      HostTensor::Uniform(dtype, transposed ? Shape{batches, 3, points} : Shape{batches, points, 3}, rng, -2, 2);
  for (int64_t i = 0; lattice && i < t.size(); ++i) t.set(i, std::floor(t.at(i)));
  return t;
}

TEST(Knn, NearestComeFirst) {
  std::vector<HostTensor> out;
  const HostTensor xyz = HostTensor::Of(DType::kF32, {1, 4, 3}, {0, 0, 0, 5, 0, 0, 1, 0, 0, 1, 0, 0});
  const HostTensor center = HostTensor::Of(DType::kF32, {1, 2, 3}, {0.9, 0, 0, 6, 0, 0});
  ASSERT_TRUE(polyop::testing::Run(Nearest(3), {xyz, center}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[1, 3, 2]");
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{2, 1, 3, 2, 0, 3}));
}

TEST(Knn, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (int round = 0; round < 80; ++round) {
    const DType dtype = kTypes[rng() % 3];
    const bool lattice = rng() % 3 == 0, transposed = rng() % 2 == 0;
    const int64_t batches = rng() % 4, points = rng() % 200;
    SCOPED_TRACE(Concat("round ", round, ": ", batches, " x ", points, " points"));
    const HostTensor xyz = Clouds(dtype, batches, points, rng, lattice, transposed);
    const HostTensor center =
        rng() % 4 == 0 ? HostTensor::Absent() : Clouds(dtype, batches, rng() % 40, rng, lattice, transposed);
    const int64_t counts[] = {1, 2, 5, 16, 101, 250};
    ExpectMatchesReference(Nearest(counts[rng() % 6], transposed), {xyz, center});
  }
}

TEST(Knn, LargeClouds) {
  std::mt19937 rng(2);
  ExpectMatchesReference(
      Nearest(8), {Clouds(DType::kF32, 2, 9000, rng, false, false), Clouds(DType::kF32, 2, 40, rng, false, false)});
}

// A power of two changes no order. The search must not compare all points where squared distances overflow float.
TEST(Knn, HugeCoordinatesAreSearchedAsFast) {
  std::mt19937 rng(3);
  constexpr int64_t kPoints = 20000;
  const HostTensor xyz = Clouds(DType::kF32, 1, kPoints, rng, false, false);
  const auto seconds_of = [&](double scale, std::vector<HostTensor>* out) {
    HostTensor scaled = xyz;
    for (int64_t i = 0; i < scaled.size(); ++i) scaled.set(i, xyz.at(i) * scale);
    const std::clock_t start = std::clock();  // of this process: the machine may be busy
    EXPECT_TRUE(polyop::testing::Run(Nearest(8), {scaled}, out).ok());
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  std::vector<HostTensor> want, got;
  const double usual = seconds_of(1, &want);
  for (const double scale : {0x1p60, 0x1p64, 0x1p83, 0x1p126}) {
    const double seconds = seconds_of(scale, &got);
    EXPECT_TRUE(got[0].SameBytes(want[0])) << "scale " << scale;
    EXPECT_LT(seconds, 30 * usual) << "scale " << scale;
  }
}

// Far points must not make the distances of the others underflow.
TEST(Knn, FarPointsAmongNearOnesMatchReference) {
  std::mt19937 rng(4);
  for (const double far : {1e19, 1e25, 3e38}) {
    for (const int64_t k : {1, 3, 40}) {
      HostTensor xyz = Clouds(DType::kF32, 1, 3000, rng, false, false);
      for (int i = 0; i < 300; ++i) {
        const auto at = static_cast<int64_t>(rng() % 9000);
        xyz.set(at, xyz.at(at) / 2 * far);
      }
      HostTensor center(DType::kF32, {1, 100, 3});
      for (int64_t i = 0; i < center.size(); ++i) center.set(i, xyz.at(i));
      SCOPED_TRACE(Concat(k, " points, ", far));
      ExpectMatchesReference(Nearest(k), {xyz, center});
    }
  }
}

TEST(Knn, FewPointsAndNonFiniteCoordinates) {
  std::vector<HostTensor> out;
  const HostTensor xyz = HostTensor::Of(DType::kF32, {1, 3, 3}, {NAN, 0, 0, 7, 0, 0, INFINITY, 0, 0});
  ASSERT_TRUE(polyop::testing::Run(Nearest(2), {xyz}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 1, 0, 0, 0, 0}));
  ASSERT_TRUE(
      polyop::testing::Run(
          Nearest(2), {HostTensor::Full(DType::kF32, {1, 0, 3}, 0), HostTensor::Full(DType::kF32, {1, 1, 3}, 0)}, &out)
          .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0}));
}

TEST(Knn, RejectsInvalidInputs) {
  const HostTensor xyz = HostTensor::Full(DType::kF32, {2, 5, 3}, 1);
  ExpectError(Nearest(1, true), {xyz},
              {"'xyz': expected 3 coordinates in dimension 1 (transposed), got shape [2, 5, 3]"});
  ExpectError(Nearest(1), {xyz, HostTensor::Full(DType::kF32, {2, 3, 4}, 1)},
              {"'center': expected 3 coordinates in dimension 2, got shape [2, 3, 4]"});
  ExpectError(Nearest(1), {xyz, HostTensor::Full(DType::kF32, {1, 3, 3}, 1)},
              {"'center'", "to be B = 2", "(shape [1, 3, 3] for"});
  ExpectError(Nearest(1), {xyz, HostTensor::Full(DType::kF16, {2, 3, 3}, 1)}, {"no kernel takes inputs"});
  ExpectAttributeError(*FindOp("knn"), {{"k", AttrValue::Int(0)}}, {"'k'", "0"});
  ExpectAttributeError(*FindOp("knn"), {}, {"'k'"});
}

}  // namespace
}  // namespace polyop::testing

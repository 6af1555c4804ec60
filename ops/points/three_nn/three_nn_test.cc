// SPDX-License-Identifier: Apache-2.0
#include "ops/points/three_nn/three_nn.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor Clouds(DType dtype, int64_t batches, int64_t points, std::mt19937& rng, bool lattice) {
  HostTensor t = HostTensor::Uniform(dtype, {batches, points, 3}, rng, -2, 2);
  for (int64_t i = 0; lattice && i < t.size(); ++i) t.set(i, std::floor(t.at(i)));
  return t;
}

TEST(ThreeNN, NearestComeFirst) {
  std::vector<HostTensor> out;
  const HostTensor target = HostTensor::Of(DType::kF32, {1, 1, 3}, {0, 0, 0});
  const HostTensor source = HostTensor::Of(DType::kF32, {1, 4, 3}, {0, 5, 0, 3, 4, 0, 0, 0, 2, 9, 9, 9});
  ASSERT_TRUE(polyop::testing::Run(ThreeNN{}, {target, source}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{2, 5, 5}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{2, 0, 1}));
}

TEST(ThreeNN, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (int round = 0; round < 60; ++round) {
    const DType dtype = kTypes[rng() % 3];
    const bool lattice = rng() % 3 == 0;
    const int64_t batches = rng() % 4, sources = 1 + rng() % (rng() % 2 ? 5 : 300);
    SCOPED_TRACE(Concat("round ", round, ": ", batches, " x ", sources, " points"));
    ExpectMatchesReference(
        ThreeNN{}, {Clouds(dtype, batches, rng() % 70, rng, lattice), Clouds(dtype, batches, sources, rng, lattice)},
        ToleranceFor(dtype));
  }
}

TEST(ThreeNN, LargeClouds) {
  std::mt19937 rng(2);
  ExpectMatchesReference(ThreeNN{},
                         {Clouds(DType::kF32, 2, 300, rng, false), Clouds(DType::kF32, 2, 9000, rng, false)});
}

TEST(ThreeNN, FewPointsAndNonFiniteCoordinates) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(polyop::testing::Run(ThreeNN{},
                                   {HostTensor::Of(DType::kF32, {1, 2, 3}, {0, 0, 0, 0, NAN, 0}),
                                    HostTensor::Of(DType::kF32, {1, 3, 3}, {NAN, 0, 0, 7, 0, 0, INFINITY, 0, 0})},
                                   &out)
                  .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{7, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{1, 0, 0, 0, 0, 0}));
}

TEST(ThreeNN, RejectsInvalidInputs) {
  const HostTensor target = HostTensor::Full(DType::kF32, {2, 5, 3}, 1);
  ExpectError(ThreeNN{}, {target, HostTensor::Full(DType::kF32, {2, 0, 3}, 1)},
              {"'source': expected at least 1 point, got none"});
  ExpectError(ThreeNN{}, {target, HostTensor::Full(DType::kF32, {1, 4, 3}, 1)},
              {"'source'", "to be B = 2", "(shape [1, 4, 3] for"});
  ExpectError(ThreeNN{}, {target, HostTensor::Full(DType::kF32, {2, 4, 2}, 1)}, {"'source'", "(shape [2, 4, 2] for"});
  ExpectError(ThreeNN{}, {target, target.Cast(DType::kBF16)}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing

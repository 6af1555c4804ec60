// SPDX-License-Identifier: Apache-2.0
#include "ops/voxels/dynamic_scatter/dynamic_scatter.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Reduce = DynamicScatter::Reduce;

DynamicScatter By(Reduce reduce) {
  DynamicScatter op;
  op.reduce_type = reduce;
  return op;
}

class DynamicScatterRandom : public ::testing::TestWithParam<DType> {};

TEST_P(DynamicScatterRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(90); ++round) {
    const int64_t points = rng() % 4 ? rng() % 80 : rng() % 1500, channels = rng() % 3 ? rng() % 40 : 64;
    const int64_t columns = 3 + rng() % 2;
    const DType index = rng() % 2 ? DType::kI32 : DType::kI64;
    HostTensor coors = HostTensor::Uniform(index, {points, columns}, rng, -0.3, 1 + static_cast<double>(rng() % 6));
    // Coordinates that do not fit into one key of 64 bits.
    const double large = index == DType::kI64 ? 4e18 : 2147483647;
    for (int64_t i = 0; i < coors.size() && round % 3 == 0; i += 1 + rng() % 3) coors.set(i, rng() % 2 ? large : 0);
    HostTensor feats = HostTensor::Uniform(GetParam(), {points, channels}, rng);
    for (int64_t i = 0; i < feats.size() && round % 5 == 0; i += 1 + rng() % 30) feats.set(i, NAN);
    SCOPED_TRACE(Concat("round ", round, ": ", points, " points"));
    ExpectMatchesReference(By(static_cast<Reduce>(round % 3)), {feats, coors}, ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DynamicScatterRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(DynamicScatter, ManyPoints) {
  std::mt19937 rng(2);
  ExpectMatchesReference(By(Reduce::kMean), {HostTensor::Uniform(DType::kF32, {40000, 5}, rng),
                                             HostTensor::Uniform(DType::kI32, {40000, 3}, rng, -1, 60)});
}

std::vector<HostTensor> Scattered(Reduce reduce, const std::vector<double>& feats, const std::vector<double>& coors) {
  const auto count = static_cast<int64_t>(feats.size());
  std::vector<HostTensor> out;
  const Status status =
      testing::Run(By(reduce),
                   {HostTensor::Of(DType::kF32, {count, 1}, feats),
                    HostTensor::Of(DType::kI64, {count, static_cast<int64_t>(coors.size()) / count}, coors)},
                   &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

TEST(DynamicScatter, VoxelsInAscendingOrder) {
  const std::vector<double> feats = {1, 2, 4, 8, 16};
  const std::vector<double> coors = {1, 0, 0, 0, 9, 9, 1, 0, 0, 0, -1, 5, 0, 9, 8};
  const std::vector<HostTensor> out = Scattered(Reduce::kSum, feats, coors);
  EXPECT_EQ(NameOf(out[1].dtype()), "i64");
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{16, 2, 5}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{0, 9, 8, 0, 9, 9, 1, 0, 0}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{2, 1, 2, -1, 0}));
  EXPECT_EQ(out[3].ToDoubles(), (std::vector<double>{1, 1, 2}));
  EXPECT_EQ(Scattered(Reduce::kMax, feats, coors)[0].ToDoubles(), (std::vector<double>{16, 2, 4}));
  EXPECT_EQ(Scattered(Reduce::kMean, feats, coors)[0].ToDoubles(), (std::vector<double>{16, 2, 2.5}));
}

TEST(DynamicScatter, MaximumKeepsNanAndInfinity) {
  const std::vector<double> coors = {0, 0, 0, 0, 0, 0, 1, 0, 0};
  const std::vector<double> got = Scattered(Reduce::kMax, {NAN, 3, -INFINITY}, coors)[0].ToDoubles();
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_EQ(got[1], -INFINITY);
}

TEST(DynamicScatter, NoPointsAndNoPointsInside) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(By(Reduce::kMax),
                           {HostTensor::Full(DType::kF32, {0, 4}, 0), HostTensor::Full(DType::kI32, {0, 3}, 0)}, &out)
                  .ok());
  EXPECT_EQ(out[0].shape(), (Shape{0, 4}));
  ExpectMatchesReference(By(Reduce::kMax),
                         {HostTensor::Full(DType::kF32, {5, 4}, 0), HostTensor::Full(DType::kI32, {5, 3}, -1)});
}

TEST(DynamicScatter, SameAtAnyAlignment) {
  std::mt19937 rng(3);
  ExpectSameAtAnyAlignment(By(Reduce::kSum), {HostTensor::Uniform(DType::kF32, {3000, 33}, rng),
                                              HostTensor::Uniform(DType::kI32, {3000, 4}, rng, 0, 5)});
}

TEST(DynamicScatter, RejectsInvalidInputs) {
  const HostTensor feats = HostTensor::Full(DType::kF32, {4, 2}, 1);
  ExpectError(By(Reduce::kMax), {feats, HostTensor::Full(DType::kI32, {4, 2}, 0)},
              {"'coors': expected 3 or 4 coordinates in dimension 1, got 2 (shape [4, 2])"});
  ExpectError(By(Reduce::kMax), {feats, HostTensor::Full(DType::kI32, {5, 3}, 0)}, {"'coors'", "to be N = 4"});
  ExpectError(By(Reduce::kMax), {feats, HostTensor::Full(DType::kF32, {4, 3}, 0)}, {"no kernel takes inputs"});
  ExpectAttributeError(*FindOp("dynamic_scatter"), {{"reduce_type", AttrValue::String("min")}},
                       {"'reduce_type'", "min"});
}

}  // namespace
}  // namespace polyop::testing

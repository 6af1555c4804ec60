// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/roipoint_pool3d/roipoint_pool3d.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor F32(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, shape, values);
}

class RoipointPool3dRandom : public ::testing::TestWithParam<DType> {};

TEST_P(RoipointPool3dRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(60); ++round) {
    const int64_t batches = rng() % 4, points = rng() % 300, boxes = rng() % 9, channels = rng() % 20;
    const RoipointPool3d op{1 + static_cast<int64_t>(rng() % 40)};
    SCOPED_TRACE(Concat("round ", round, ": ", batches, " x ", points, " points, ", boxes, " boxes, ",
                        op.num_sampled_points, " samples"));
    ExpectMatchesReference(op, {HostTensor::Uniform(GetParam(), {batches, points, 3}, rng, -2, 2),
                                HostTensor::Uniform(GetParam(), {batches, points, channels}, rng),
                                HostTensor::Uniform(GetParam(), {batches, boxes, 7}, rng, -2, 3)});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoipointPool3dRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(RoipointPool3d, MorePointsThanABlockVisitsAtOnce) {
  std::mt19937 rng(2);
  for (int64_t samples : {3, 512, 4000}) {
    ExpectMatchesReference(RoipointPool3d{samples}, {HostTensor::Uniform(DType::kF32, {1, 9000, 3}, rng, -2, 2),
                                                     HostTensor::Uniform(DType::kF32, {1, 9000, 5}, rng),
                                                     HostTensor::Uniform(DType::kF32, {1, 6, 7}, rng, -1, 4)});
  }
}

TEST(RoipointPool3d, PointsRepeatFromTheFirstOne) {
  // z is the bottom of the box: the second point is below the box, the others are inside.
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(RoipointPool3d{5},
                           {F32({1, 3, 3}, {0, 0, 1, 0, 0, -0.5, 0.5, 0, 2}), F32({1, 3, 1}, {7, 8, 9}),
                            F32({1, 2, 7}, {0, 0, 0, 2, 2, 2, 0, 90, 0, 0, 2, 2, 2, 0})},
                           &out)
                  .ok());
  std::vector<double> expected = {0, 0, 1, 7, 0.5, 0, 2, 9, 0, 0, 1, 7, 0.5, 0, 2, 9, 0, 0, 1, 7};
  expected.resize(40, 0);  // the second box is empty
  EXPECT_EQ(out[0].ToDoubles(), expected);
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{0, 1}));
}

TEST(RoipointPool3d, NoPointsAtAll) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(RoipointPool3d{2},
                           {F32({1, 0, 3}, {}), F32({1, 0, 1}, {}), F32({1, 1, 7}, {0, 0, 0, 1, 1, 1, 0})}, &out)
                  .ok());
  EXPECT_EQ(out[0].ToDoubles(), std::vector<double>(8, 0));
  EXPECT_EQ(out[1].ToDoubles(), std::vector<double>{1});
}

TEST(RoipointPool3d, NanAndInfinityAreCopiedAndNeverInside) {
  const HostTensor points = F32({1, 4, 3}, {NAN, 0, 1, 0, 0, 1, 0, INFINITY, 1, 0.5, 0.5, 1});
  const HostTensor features = F32({1, 4, 2}, {1, 2, NAN, INFINITY, 3, 4, -INFINITY, 5});
  const HostTensor boxes = F32({1, 3, 7}, {0, 0, 0, 2, 2, 2, 0, 0, 0, 0, INFINITY, 2, 2, 0, 0, 0, 0, 2, 2, 2, NAN});
  ExpectMatchesReference(RoipointPool3d{3}, {points, features, boxes});
}

TEST(RoipointPool3d, SameAtAnyAlignment) {
  std::mt19937 rng(3);
  ExpectSameAtAnyAlignment(RoipointPool3d{32}, {HostTensor::Uniform(DType::kF32, {1, 500, 3}, rng, -2, 2),
                                                HostTensor::Uniform(DType::kF32, {1, 500, 6}, rng),
                                                HostTensor::Uniform(DType::kF32, {1, 9, 7}, rng, -1, 4)});
}

TEST(RoipointPool3d, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(RoipointPool3d{}, {f32({1, 5, 3}), f32({1, 4, 2}), f32({1, 2, 7})}, {"'features'", "to be N = 5"});
  ExpectError(RoipointPool3d{}, {f32({1, 5, 3}), f32({1, 5, 2}), f32({2, 2, 7})}, {"'boxes'", "to be B = 1"});
  ExpectError(RoipointPool3d{}, {f32({1, 5, 4}), f32({1, 5, 2}), f32({1, 2, 7})},
              {"'points'", "expected dimension 2", "got 4"});
  ExpectAttributeError(*FindOp("roipoint_pool3d"), {{"num_sampled_points", AttrValue::Int(0)}},
                       {"'num_sampled_points': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing

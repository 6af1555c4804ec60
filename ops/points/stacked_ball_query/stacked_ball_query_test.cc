// SPDX-License-Identifier: Apache-2.0
#include "ops/points/stacked_ball_query/stacked_ball_query.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

StackedBallQuery Ball(double min_radius, double max_radius, int64_t samples) {
  StackedBallQuery op;
  op.min_radius = static_cast<float>(min_radius);
  op.max_radius = static_cast<float>(max_radius);
  op.sample_num = samples;
  return op;
}

HostTensor Counts(DType dtype, const std::vector<double>& values) {
  return HostTensor::Of(dtype, {static_cast<int64_t>(values.size())}, values);
}

TEST(StackedBallQuery, IndicesCountFromTheCloud) {
  const HostTensor xyz = HostTensor::Of(DType::kF32, {4, 3}, {0, 0, 0, 9, 0, 0, 9, 0, 0, 0, 0, 0});
  const HostTensor centre = HostTensor::Of(DType::kF32, {3, 3}, {9, 0, 0, 0, 0, 0, 4, 4, 4});
  for (DType dtype : {DType::kI32, DType::kI64}) {
    std::vector<HostTensor> out;
    ASSERT_TRUE(
        polyop::testing::Run(Ball(0, 1, 2), {xyz, Counts(dtype, {2, 2}), centre, Counts(dtype, {1, 2})}, &out).ok());
    EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{1, 1, 1, 1, -1, 0}));
  }
}

TEST(StackedBallQuery, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  const int64_t kSamples[] = {1, 2, 8, 33, 500};
  for (int round = 0; round < 60; ++round) {
    const DType dtype = kTypes[rng() % 3], integers = rng() % 2 ? DType::kI32 : DType::kI64;
    const int64_t clouds = rng() % 4;
    std::vector<double> counts, centre_counts;
    int64_t points = 0, centres = 0;
    for (int64_t b = 0; b < clouds; ++b) {
      counts.push_back(rng() % (rng() % 2 ? 40 : 1200));
      centre_counts.push_back(rng() % 20);
      points += static_cast<int64_t>(counts.back());
      centres += static_cast<int64_t>(centre_counts.back());
    }
    SCOPED_TRACE(Concat("round ", round, ": ", clouds, " clouds, ", points, " points"));
    ExpectMatchesReference(Ball((rng() % 3) * 0.5, 0.25 * (rng() % 12), kSamples[rng() % 5]),
                           {HostTensor::Uniform(dtype, {points, 3}, rng, -2, 2), Counts(integers, counts),
                            HostTensor::Uniform(dtype, {centres, 3}, rng, -2, 2), Counts(integers, centre_counts)});
  }
}

TEST(StackedBallQuery, RejectsInvalidInputs) {
  const HostTensor xyz = HostTensor::Full(DType::kF32, {5, 3}, 1), centre = HostTensor::Full(DType::kF32, {4, 3}, 1);
  const auto error = [&](const std::vector<double>& counts, const std::vector<double>& centres,
                         const std::vector<std::string>& parts) {
    ExpectError(Ball(0, 1, 2), {xyz, Counts(DType::kI32, counts), centre, Counts(DType::kI32, centres)}, parts);
  };
  error({-1, 6}, {2, 2}, {"'xyz_batch_cnt'[0]: expected at least 0, got -1"});
  error({2, 2}, {2, 2}, {"'xyz_batch_cnt': expected a sum of N = 5, got 4"});
  error({2, 4}, {2, 2}, {"'xyz_batch_cnt'[1]: expected at most 3, so that the sum is N = 5, got 4"});
  error({2, 3}, {2, 1}, {"'center_xyz_batch_cnt': expected a sum of M = 4, got 3"});
  error({2, 3}, {4}, {"'center_xyz_batch_cnt'", "to be B = 2", "(shape [1] for"});
  ExpectError(Ball(0, 1, 2), {xyz, Counts(DType::kI32, {5}), centre, Counts(DType::kI64, {4})},
              {"no kernel takes inputs"});
  ExpectAttributeError(*FindOp("stacked_ball_query"),
                       {{"max_radius", AttrValue::Float(NAN)}, {"sample_num", AttrValue::Int(1)}}, {"'max_radius'"});
}

}  // namespace
}  // namespace polyop::testing

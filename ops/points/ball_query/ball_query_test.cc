// SPDX-License-Identifier: Apache-2.0
#include "ops/points/ball_query/ball_query.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

BallQuery Ball(double min_radius, double max_radius, int64_t samples) {
  BallQuery op;
  op.min_radius = static_cast<float>(min_radius);
  op.max_radius = static_cast<float>(max_radius);
  op.sample_num = samples;
  return op;
}

HostTensor Points(DType dtype, const Shape& shape, std::mt19937& rng, bool lattice) {
  HostTensor t = HostTensor::Uniform(dtype, shape, rng, -2, 2);
  for (int64_t i = 0; lattice && i < t.size(); ++i) t.set(i, std::floor(t.at(i)));
  return t;
}

std::vector<double> Find(const BallQuery& op, const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> out;
  EXPECT_TRUE(polyop::testing::Run(op, inputs, &out).ok());
  return out[0].ToDoubles();
}

TEST(BallQuery, FindsFirstPointsAndRepeatsTheFirst) {
  const HostTensor xyz = HostTensor::Of(DType::kF32, {1, 4, 3}, {5, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0});
  const HostTensor centre = HostTensor::Of(DType::kF32, {1, 1, 3}, {0, 0, 0});
  EXPECT_EQ(Find(Ball(0, 2, 4), {xyz, centre}),
            (std::vector<double>{1, 3, 1, 1}));  // distance 2 is not below max_radius 2
  EXPECT_EQ(Find(Ball(0, 9, 2), {xyz, centre}), (std::vector<double>{0, 1}));
  EXPECT_EQ(Find(Ball(1.5, 9, 4), {xyz, centre}), (std::vector<double>{0, 2, 3, 0}));  // distance 0 counts
  EXPECT_EQ(Find(Ball(7, 8, 2), {xyz, HostTensor::Of(DType::kF32, {1, 1, 3}, {0.5, 0, 0})}),
            (std::vector<double>{0, 0}));
}

TEST(BallQuery, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  const int64_t kSamples[] = {1, 2, 8, 33, 500};
  for (int round = 0; round < 80; ++round) {
    const DType dtype = kTypes[rng() % 3];
    const bool lattice = rng() % 3 == 0;
    const int64_t batches = rng() % 4, points = rng() % (rng() % 2 ? 40 : 1200), centres = rng() % 30;
    const BallQuery op = Ball((rng() % 3) * 0.5, 0.25 * (rng() % 12), kSamples[rng() % 5]);
    SCOPED_TRACE(Concat("round ", round, ": ", batches, " x ", points, " points"));
    ExpectMatchesReference(
        op, {Points(dtype, {batches, points, 3}, rng, lattice), Points(dtype, {batches, centres, 3}, rng, lattice)});
  }
}

// Trees of several levels; balls that hold few and many points.
TEST(BallQuery, LargeClouds) {
  std::mt19937 rng(2);
  const HostTensor xyz = Points(DType::kF32, {2, 12000, 3}, rng, false);
  for (double radius : {0.05, 0.3, 1.0}) {
    ExpectMatchesReference(Ball(0, radius, 32), {xyz, Points(DType::kF32, {2, 60, 3}, rng, false)});
  }
  ExpectMatchesReference(Ball(0.1, 0.2, 4000), {xyz, Points(DType::kF32, {2, 8, 3}, rng, false)});
  ExpectMatchesReference(Ball(0, 3, 4000), {xyz, Points(DType::kF32, {2, 8, 3}, rng, false)});
  ExpectMatchesReference(Ball(0, 1.5, 30),
                         {Points(DType::kF16, {1, 9000, 3}, rng, true), Points(DType::kF16, {1, 30, 3}, rng, true)});
}

TEST(BallQuery, NonFiniteAndFarPoints) {
  std::mt19937 rng(3);
  HostTensor xyz = Points(DType::kF32, {1, 900, 3}, rng, false), centres = Points(DType::kF32, {1, 40, 3}, rng, false);
  for (int64_t i = 0; i < xyz.size(); i += 7) xyz.set(i, i % 2 ? NAN : INFINITY);
  for (int64_t i = 0; i < centres.size(); i += 9) centres.set(i, i % 2 ? NAN : -INFINITY);
  ExpectMatchesReference(Ball(0, 1, 8), {xyz, centres});
  ExpectMatchesReference(Ball(0, 3e38, 8), {xyz, centres});
  for (double factor : {1e25, 1e-25, 3e37}) {  // squared distances overflow or underflow fp32
    HostTensor far = Points(DType::kF32, {1, 900, 3}, rng, false), around = Points(DType::kF32, {1, 20, 3}, rng, false);
    for (int64_t i = 0; i < far.size(); ++i) far.set(i, far.at(i) * factor);
    for (int64_t i = 0; i < around.size(); ++i) around.set(i, around.at(i) * factor);
    ExpectMatchesReference(Ball(0, factor, 8), {far, around});
  }
}

TEST(BallQuery, RejectsInvalidInputs) {
  ExpectError(Ball(0, 1, 2), {HostTensor::Full(DType::kF32, {1, 5, 3}, 1), HostTensor::Full(DType::kF32, {2, 5, 3}, 1)},
              {"'center_xyz'", "to be B = 1", "(shape [2, 5, 3] for"});
  const Op& op = *FindOp("ball_query");
  const auto attributes = [](double min_radius, double max_radius, int64_t samples) {
    return std::vector<std::pair<std::string, AttrValue>>{{"min_radius", AttrValue::Float(min_radius)},
                                                          {"max_radius", AttrValue::Float(max_radius)},
                                                          {"sample_num", AttrValue::Int(samples)}};
  };
  ExpectAttributeError(op, attributes(-1, 1, 2), {"'min_radius'", "-1"});
  ExpectAttributeError(op, attributes(0, -1, 2), {"'max_radius'", "-1"});
  ExpectAttributeError(op, attributes(0, NAN, 2), {"'max_radius'"});
  ExpectAttributeError(op, attributes(0, 1, 0), {"'sample_num'", "0"});
  ExpectAttributeError(op, {{"sample_num", AttrValue::Int(1)}}, {"'max_radius'"});
}

}  // namespace
}  // namespace polyop::testing

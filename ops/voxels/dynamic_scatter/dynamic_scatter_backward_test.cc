// SPDX-License-Identifier: Apache-2.0
#include "ops/voxels/dynamic_scatter/dynamic_scatter_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Reduce = DynamicScatter::Reduce;

DynamicScatterBackward Backward(Reduce reduce) {
  DynamicScatterBackward op;
  op.reduce_type = reduce;
  return op;
}

// Returns the inputs of the gradient for these features and coordinates.
std::vector<HostTensor> InputsOf(Reduce reduce, const HostTensor& feats, const HostTensor& coors, std::mt19937& rng) {
  DynamicScatter op;
  op.reduce_type = reduce;
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(op, {feats, coors}, &out).ok());
  return {HostTensor::Uniform(feats.dtype(), out[0].shape(), rng), feats, coors, out[0], out[2]};
}

class DynamicScatterBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(DynamicScatterBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(24); ++round) {
    const auto reduce = static_cast<Reduce>(round % 3);
    const int64_t points = rng() % 4 ? rng() % 80 : rng() % 1500, channels = rng() % 3 ? rng() % 40 : 97;
    const DType index = rng() % 2 ? DType::kI32 : DType::kI64;
    const HostTensor coors = HostTensor::Uniform(index, {points, 3 + static_cast<int64_t>(rng() % 2)}, rng, -0.3,
                                                 1 + static_cast<double>(rng() % 6));
    HostTensor feats = HostTensor::Uniform(GetParam(), {points, channels}, rng);
    for (int64_t i = 0; i < feats.size(); ++i) feats.set(i, std::round(feats.at(i) * 8) / 8);  // equal features
    for (int64_t i = 0; i < feats.size() && round % 2; i += 1 + rng() % 30) feats.set(i, rng() % 2 ? NAN : -INFINITY);
    SCOPED_TRACE(Concat("round ", round, ": ", points, " points"));
    ExpectMatchesReference(Backward(reduce), InputsOf(reduce, feats, coors, rng), ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DynamicScatterBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(DynamicScatterBackward, GivesTheGradientToTheFirstMaximum) {
  const HostTensor coors = HostTensor::Of(DType::kI32, {5, 3}, {1, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0, 0, 1, 0, 0});
  const auto grads = [&](Reduce reduce, const std::vector<double>& feats, const std::vector<double>& grad) {
    std::mt19937 rng(2);
    std::vector<HostTensor> inputs = InputsOf(reduce, HostTensor::Of(DType::kF32, {5, 1}, feats), coors, rng), out;
    inputs[0] = HostTensor::Of(DType::kF32, {2, 1}, grad);
    EXPECT_TRUE(testing::Run(Backward(reduce), inputs, &out).ok());
    return out[0].ToDoubles();
  };
  EXPECT_EQ(grads(Reduce::kMax, {1, 2, 4, 9, 4}, {5, 7}), (std::vector<double>{0, 5, 7, 0, 0}));
  EXPECT_EQ(grads(Reduce::kMax, {1, 2, NAN, 9, NAN}, {5, 7}), (std::vector<double>{0, 5, 7, 0, 0}));
  EXPECT_EQ(grads(Reduce::kSum, {1, 2, 4, 9, 4}, {5, 7}), (std::vector<double>{7, 5, 7, 0, 7}));
  EXPECT_EQ(grads(Reduce::kMean, {1, 2, 4, 9, 4}, {5, 6}), (std::vector<double>{2, 5, 2, 0, 2}));
  for (const Reduce reduce : {Reduce::kMax, Reduce::kMean, Reduce::kSum}) {
    const std::vector<double> got = grads(reduce, {1, 2, 4, 9, 4}, {NAN, 7});
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(got[i]), i == 1) << i;
  }
}

TEST(DynamicScatterBackward, NoPointsAndNoPointsInside) {
  std::mt19937 rng(3);
  for (const Reduce reduce : {Reduce::kMax, Reduce::kMean, Reduce::kSum}) {
    for (const int64_t points : {0, 5}) {
      ExpectMatchesReference(Backward(reduce), InputsOf(reduce, HostTensor::Full(DType::kF32, {points, 4}, 1),
                                                        HostTensor::Full(DType::kI32, {points, 3}, -1), rng));
    }
  }
}

TEST(DynamicScatterBackward, RejectsInvalidInputs) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs =
      InputsOf(Reduce::kSum, HostTensor::Full(DType::kF32, {4, 2}, 1), HostTensor::Full(DType::kI32, {4, 3}, 0), rng);
  inputs[4].set(2, 1);
  ExpectError(Backward(Reduce::kSum), inputs,
              {"'point2voxel'[2]: expected a row of 'voxel_feats' in [0, 1) or -1, got 1"});
  inputs[2] = HostTensor::Full(DType::kI32, {4, 2}, 0);
  ExpectError(Backward(Reduce::kSum), inputs, {"'coors': expected 3 or 4 coordinates in dimension 1, got 2"});
}

}  // namespace
}  // namespace polyop::testing

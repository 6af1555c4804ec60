// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/prroi_pool/prroi_pool_backward.h"

#include <cmath>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

PrRoiPoolBackward Backward(int64_t rows, int64_t columns, float scale) {
  PrRoiPoolBackward op;
  op.pooled_height = rows;
  op.pooled_width = columns;
  op.spatial_scale = scale;
  return op;
}

// Random gradients, features, boxes and their pooled features. No box is so small that the derivative is large.
std::vector<HostTensor> Inputs(const PrRoiPoolBackward& op, DType dtype, const Shape& map, int64_t count,
                               std::mt19937& rng) {
  HostTensor rois = RandomRoisWithSides(dtype, count, map[0], 4, rng);
  for (int64_t r = 3; r < count; r += 4) rois.set(5 * r + 3, rois.at(5 * r + 1) - 1);  // reversed
  const HostTensor features = HostTensor::Uniform(dtype, map, rng);
  RunOptions options;
  if (dtype == DType::kF64) options.device = Device::kReference;
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(static_cast<const PrRoiPool&>(op), {features, rois}, &out, options).ok());
  return {HostTensor::Uniform(dtype, {count, map[1], op.pooled_height, op.pooled_width}, rng), features, rois, out[0]};
}

class PrRoiPoolBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(PrRoiPoolBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (PrRoiPoolBackward op : {Backward(1, 1, 1), Backward(3, 2, 0.75f), Backward(7, 7, 0.25f), Backward(2, 5, 3)}) {
    for (const Shape& map : {Shape{2, 3, 9, 13}, Shape{1, 49, 11, 7}, Shape{3, 16, 1, 1}}) {
      SCOPED_TRACE(Concat(ToString(map), ", ", op.pooled_height, " rows of bins"));
      const std::vector<HostTensor> inputs = Inputs(op, GetParam(), map, 12, rng);
      Tolerance tolerance = ToleranceFor(GetParam());
      for (int64_t mask : {1, 2, 3}) {
        op.output_mask = mask;
        if (mask > 1) tolerance.absolute = std::max(tolerance.absolute, 1e-3);  // sums of many terms of both signs
        ExpectMatchesReference(op, inputs, tolerance);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PrRoiPoolBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Compares the gradient of the boxes with differences of pooled features, and <grad, pool(x)> with <backward(grad), x>.
TEST(PrRoiPoolBackward, IsTheDerivativeOfTheForwardPass) {
  std::mt19937 rng(2);
  const PrRoiPoolBackward op = Backward(3, 4, 0.5f);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF64, {2, 3, 20, 19}, 7, rng);
  RunOptions options;
  options.device = Device::kReference;
  const auto value_of = [&](const HostTensor& rois) {
    std::vector<HostTensor> pooled;
    EXPECT_TRUE(testing::Run(static_cast<const PrRoiPool&>(op), {inputs[1], rois}, &pooled, options).ok());
    double sum = 0;
    for (int64_t i = 0; i < pooled[0].size(); ++i) sum += pooled[0].at(i) * inputs[0].at(i);
    return sum;
  };
  std::vector<HostTensor> grad;
  ASSERT_TRUE(testing::Run(op, inputs, &grad, options).ok());
  double product = 0;
  for (int64_t i = 0; i < grad[0].size(); ++i) product += grad[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(product, value_of(inputs[2]), 1e-6);
  for (int64_t i = 0; i < inputs[2].size(); ++i) {
    if (i % 5 == 0) {
      EXPECT_EQ(grad[1].at(i), 0);
      continue;
    }
    constexpr double kStep = 1e-5;
    HostTensor more = inputs[2], less = inputs[2];
    more.set(i, more.at(i) + kStep);
    less.set(i, less.at(i) - kStep);
    EXPECT_NEAR(grad[1].at(i), (value_of(more) - value_of(less)) / (2 * kStep), 1e-4) << i;
  }
}

TEST(PrRoiPoolBackward, NanInfiniteAndHugeBoxes) {
  std::mt19937 rng(3);
  const PrRoiPoolBackward op = Backward(2, 3, 1);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 8, 8}, 5, rng);
  inputs[2] = HostTensor::Of(DType::kF32, {5, 5}, {0, NAN, 0, 4,    4,    0,   0,   0, INFINITY, 4, 0,    0, -INFINITY,
                                                   4, 4,   0, -1e6, -1e6, 1e6, 1e6, 0, -3e38,    0, 3e38, 4});
  ExpectMatchesReference(op, inputs);
}

TEST(PrRoiPoolBackward, EmptyInputs) {
  std::mt19937 rng(4);
  const PrRoiPoolBackward op = Backward(2, 2, 1);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {2, 3, 5, 4}, 0, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 0, 4}, 2, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 0, 4, 4}, 2, rng));
}

TEST(PrRoiPoolBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  const PrRoiPoolBackward op = Backward(2, 3, 1);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 3, 5, 4}, 2, rng);
  inputs[2].set(5, 2);
  ExpectError(op, inputs, {"'rois'[1, 0]: expected a batch index in [0, 2), got 2"});
  inputs[3] = HostTensor::Full(DType::kF32, {2, 3, 3, 2}, 0);
  ExpectError(op, inputs, {"'output'", "(pooled_height) = 2"});
}

}  // namespace
}  // namespace polyop::testing

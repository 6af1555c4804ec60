// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_pool/roi_pool_backward.h"

#include <cmath>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

RoiPoolBackward Backward(int64_t rows, int64_t columns, float scale, bool rounded = true) {
  RoiPoolBackward op;
  op.output_height = rows;
  op.output_width = columns;
  op.spatial_scale = scale;
  op.rounded = rounded;
  return op;
}

// Random gradients, a map, boxes and the argmax of the forward pass.
std::vector<HostTensor> Inputs(const RoiPoolBackward& op, DType dtype, const Shape& map, int64_t rois,
                               std::mt19937& rng) {
  const HostTensor input = HostTensor::Uniform(dtype, map, rng), boxes = RandomRois(dtype, rois, map[0], rng);
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(static_cast<const RoiPool&>(op), {input, boxes}, &out).ok());
  return {HostTensor::Uniform(dtype, {rois, map[1], op.output_height, op.output_width}, rng), input, boxes, out[1]};
}

class RoiPoolBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(RoiPoolBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const RoiPoolBackward& op : {Backward(1, 1, 1), Backward(3, 2, 0.75f), Backward(7, 7, 0.25f, false)}) {
    for (const Shape& map : {Shape{2, 3, 9, 13}, Shape{1, 49, 11, 7}, Shape{3, 16, 1, 1}}) {
      ExpectMatchesReference(op, Inputs(op, GetParam(), map, 24, rng), ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoiPoolBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Every bin's gradient is added to one pixel, so the pooled sum of gradients weighted by the maxima is that of the map.
TEST(RoiPoolBackward, WeighsTheMaximumsPixels) {
  std::mt19937 rng(2);
  const RoiPoolBackward op = Backward(4, 3, 1);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 5, 19, 17}, 9, rng);
  std::vector<HostTensor> grad, pooled;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(static_cast<const RoiPool&>(op), {inputs[1], inputs[2]}, &pooled).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < pooled[0].size(); ++i) left += pooled[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grad[0].size(); ++i) right += grad[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-3);
}

TEST(RoiPoolBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(3);
  const RoiPoolBackward op = Backward(1, 1, 1);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 2, 6, 6}, 2, rng);
  inputs[2] = HostTensor::Of(DType::kF32, {2, 5}, {0, 0, 0, 5, 5, 0, 0, 0, 5, 5});
  inputs[3] = HostTensor::Of(DType::kI32, {2, 2, 1, 1}, {7, -1, 8, 9});
  inputs[0].set(0, NAN);
  inputs[0].set(1, INFINITY);  // belongs to no pixel
  ExpectMatchesReference(op, inputs);
  std::vector<HostTensor> grad;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  for (int64_t i = 0; i < grad[0].size(); ++i) EXPECT_EQ(std::isfinite(grad[0].at(i)), i != 7) << i;
}

TEST(RoiPoolBackward, EmptyInputs) {
  std::mt19937 rng(4);
  const RoiPoolBackward op = Backward(2, 2, 1);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {2, 3, 5, 4}, 0, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 0, 4}, 2, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 0, 4, 4}, 2, rng));
}

TEST(RoiPoolBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  const RoiPoolBackward op = Backward(2, 2, 1);
  const std::vector<HostTensor> good = Inputs(op, DType::kF32, {2, 3, 5, 4}, 2, rng);
  const auto with = [&](size_t tensor, int64_t at, double value) {
    std::vector<HostTensor> inputs = good;
    inputs[tensor].set(at, value);
    return inputs;
  };
  ExpectError(op, with(2, 5, 2), {"'rois'[1, 0]: expected a batch index in [0, 2), got 2"});
  ExpectError(op, with(3, 7, 20), {"'argmax'[7]: expected -1 or a pixel in [0, 20), got 20"});
  ExpectError(op, with(3, 7, -2), {"'argmax'[7]", "got -2"});
  std::vector<HostTensor> inputs = good;
  inputs[0] = HostTensor::Full(DType::kF32, {2, 3, 2, 3}, 0);
  ExpectError(op, inputs, {"'grad_output'", "(output_width) = 2"});
}

}  // namespace
}  // namespace polyop::testing

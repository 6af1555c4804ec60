// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/bezier_align/bezier_align_backward.h"

#include <cmath>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

BezierAlignBackward Backward(int64_t rows, int64_t columns, int64_t ratio, bool aligned, float scale = 0.75f) {
  BezierAlignBackward op;
  op.output_height = rows;
  op.output_width = columns;
  op.spatial_scale = scale;
  op.sampling_ratio = ratio;
  op.aligned = aligned;
  return op;
}

std::vector<HostTensor> Inputs(const BezierAlignBackward& op, DType dtype, const Shape& map, int64_t count,
                               std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {count, map[1], op.output_height, op.output_width}, rng),
          HostTensor::Uniform(dtype, map, rng), RandomBezierRois(dtype, count, map[0], rng)};
}

class BezierAlignBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(BezierAlignBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t ratio : {-1, 1, 2, 5}) {
    for (bool aligned : {true, false}) {
      for (const Shape& map : {Shape{2, 3, 9, 13}, Shape{1, 49, 11, 7}, Shape{3, 16, 1, 1}}) {
        SCOPED_TRACE(Concat(ToString(map), ", ratio ", ratio));
        const BezierAlignBackward op = Backward(2, 5, ratio, aligned);
        ExpectMatchesReference(op, Inputs(op, GetParam(), map, 9, rng), ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BezierAlignBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The average is linear in the map, so <grad, pool(x)> = <backward(grad), x>.
TEST(BezierAlignBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const BezierAlignBackward op = Backward(8, 40, 2, true, 2);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 20, 60, 40}, 20, rng);
  std::vector<HostTensor> grad, pooled;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(static_cast<const BezierAlign&>(op), {inputs[1], inputs[2]}, &pooled).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < pooled[0].size(); ++i) left += pooled[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grad[0].size(); ++i) right += grad[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-2);
}

TEST(BezierAlignBackward, NanInfiniteAndHugeCurves) {
  std::mt19937 rng(3);
  for (int64_t ratio : {0, 2}) {
    const BezierAlignBackward op = Backward(2, 3, ratio, true, 1);
    std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 8, 8}, 5, rng);
    inputs[2].set(17 * 0 + 6, NAN);
    inputs[2].set(17 * 1 + 16, INFINITY);
    inputs[2].set(17 * 2 + 1, -1e6);
    inputs[2].set(17 * 2 + 9, 1e6);
    inputs[2].set(17 * 3 + 3, 3e38);
    inputs[0].set(17 * 4, NAN);
    ExpectMatchesReference(op, inputs);
  }
}

TEST(BezierAlignBackward, EmptyInputs) {
  std::mt19937 rng(4);
  const BezierAlignBackward op = Backward(2, 3, 2, true);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {2, 3, 5, 4}, 0, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 0, 4}, 2, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 0, 4, 4}, 2, rng));
}

TEST(BezierAlignBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  const BezierAlignBackward op = Backward(2, 3, 2, true);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 3, 5, 4}, 2, rng);
  inputs[2].set(17, 2);
  ExpectError(op, inputs, {"'rois'[1, 0]: expected a batch index in [0, 2), got 2"});
  inputs[0] = HostTensor::Full(DType::kF32, {2, 3, 2, 4}, 0);
  ExpectError(op, inputs, {"'grad_output'", "(output_width) = 3"});
}

}  // namespace
}  // namespace polyop::testing

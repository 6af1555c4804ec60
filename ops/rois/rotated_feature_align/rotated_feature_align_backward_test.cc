// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/rotated_feature_align/rotated_feature_align_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

RotatedFeatureAlignBackward Backward(int64_t points, float scale = 0.25f) {
  RotatedFeatureAlignBackward op;
  op.spatial_scale = scale;
  op.points = points;
  return op;
}

std::vector<HostTensor> Inputs(DType dtype, const Shape& map, std::mt19937& rng) {
  std::uniform_real_distribution<double> at(-8, 40), size(0, 30), angle(-3, 3);
  HostTensor boxes(dtype, {map[0], map[2], map[3], 5});
  for (int64_t i = 0; i < boxes.size(); ++i) boxes.set(i, i % 5 < 2 ? at(rng) : i % 5 < 4 ? size(rng) : angle(rng));
  return {HostTensor::Uniform(dtype, map, rng), HostTensor::Uniform(dtype, map, rng), boxes};
}

class RotatedFeatureAlignBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(RotatedFeatureAlignBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t points : {1, 5}) {
    for (const Shape& map : {Shape{2, 3, 9, 13}, Shape{1, 17, 11, 37}, Shape{1, 16, 1, 1}, Shape{1, 33, 8, 9},
                             Shape{0, 3, 4, 4}, Shape{1, 0, 4, 4}}) {
      SCOPED_TRACE(ToString(map) + " points " + std::to_string(points));
      ExpectMatchesReference(Backward(points), Inputs(GetParam(), map, rng), ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RotatedFeatureAlignBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The operator is linear in the features, so <grad, f(x)> = <backward(grad), x>.
TEST(RotatedFeatureAlignBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const RotatedFeatureAlignBackward op = Backward(5, 1);
  const std::vector<HostTensor> inputs = Inputs(DType::kF32, {2, 20, 40, 30}, rng);
  std::vector<HostTensor> grad, aligned;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(static_cast<const RotatedFeatureAlign&>(op), {inputs[1], inputs[2]}, &aligned).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < aligned[0].size(); ++i) left += aligned[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grad[0].size(); ++i) right += grad[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-2);
}

TEST(RotatedFeatureAlignBackward, NanBoxesAndGradientsStayLocal) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 3, 4, 4}, rng);
  for (int64_t i = 0; i < inputs[2].size(); i += 7) inputs[2].set(i, i % 2 ? NAN : INFINITY);
  inputs[0].set(5, NAN);
  inputs[0].set(20, INFINITY);
  ExpectMatchesReference(Backward(5), inputs);
}

TEST(RotatedFeatureAlignBackward, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectError(Backward(1), {f32({1, 3, 4, 4}), f32({1, 3, 4, 4}), f32({1, 4, 5, 5})},
              {"'best_bboxes'", "expected dimension 2 to be W = 4", "got 5"});
  ExpectError(Backward(1), {f32({1, 3, 4, 4}), f32({1, 2, 4, 4}), f32({1, 4, 4, 5})}, {"'features'", "C = 3"});
}

}  // namespace
}  // namespace polyop::testing

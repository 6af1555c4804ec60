// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/deform_roi_pool/deform_roi_pool_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

DeformRoiPoolBackward Backward(int64_t rows, int64_t columns, float scale, float ratio, float gamma) {
  DeformRoiPoolBackward op;
  op.pooled_height = rows;
  op.pooled_width = columns;
  op.spatial_scale = scale;
  op.sampling_ratio = ratio;
  op.gamma = gamma;
  return op;
}

std::vector<HostTensor> Inputs(const DeformRoiPoolBackward& op, DType dtype, const Shape& map, int64_t count,
                               std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {count, map[1], op.pooled_height, op.pooled_width}, rng),
          HostTensor::Uniform(dtype, map, rng), RandomRoisWithSides(dtype, count, map[0], 0, rng),
          HostTensor::Uniform(dtype, {count, 2, op.pooled_height, op.pooled_width}, rng, -2, 2)};
}

class DeformRoiPoolBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(DeformRoiPoolBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (float ratio : {-1.0f, 0.0f, 1.0f, 2.0f, 5.0f}) {
    for (const Shape& map : {Shape{2, 3, 9, 13}, Shape{1, 49, 11, 7}, Shape{3, 16, 1, 1}}) {
      SCOPED_TRACE(Concat(ToString(map), ", ratio ", ratio));
      const DeformRoiPoolBackward op = Backward(3, 2, 0.73f, ratio, 0.3f);
      std::vector<HostTensor> inputs = Inputs(op, GetParam(), map, 11, rng);
      ExpectAllMasksMatchReference(op, inputs, 2, ToleranceFor(GetParam()));
      inputs.pop_back();  // no offsets
      ExpectMatchesReference(op, inputs, ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeformRoiPoolBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The average is linear in the map, so <grad, pool(x)> = <backward(grad), x>. On a map that is linear in its columns
// and rows, the gradient of an offset is the gradient of the shift.
TEST(DeformRoiPoolBackward, OfALinearMap) {
  const DeformRoiPoolBackward op = Backward(2, 2, 1, 2, 0.5f);
  HostTensor ramp(DType::kF32, {1, 1, 20, 20});
  for (int64_t i = 0; i < ramp.size(); ++i) ramp.set(i, static_cast<double>(i % 20 + i / 20 * 10));
  const HostTensor roi = HostTensor::Of(DType::kF32, {1, 5}, {0, 4.6, 6.6, 8.6, 14.6});  // 4 wide, 8 high
  const HostTensor offset = HostTensor::Full(DType::kF32, {1, 2, 2, 2}, 0.1);
  const HostTensor grad = HostTensor::Of(DType::kF32, {1, 1, 2, 2}, {1, 2, 3, 4});
  std::vector<HostTensor> out, pooled;
  ASSERT_TRUE(testing::Run(op, {grad, ramp, roi, offset}, &out).ok());
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(out[1].at(i), grad.at(i) * 0.5 * 4, 1e-4) << i;
    EXPECT_NEAR(out[1].at(4 + i), grad.at(i) * 0.5 * 8 * 10, 1e-3) << i;
  }
  ASSERT_TRUE(testing::Run(static_cast<const DeformRoiPool&>(op), {ramp, roi, offset}, &pooled).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < 4; ++i) left += pooled[0].at(i) * grad.at(i);
  for (int64_t i = 0; i < ramp.size(); ++i) right += out[0].at(i) * ramp.at(i);
  EXPECT_NEAR(left, right, 1e-2);
}

TEST(DeformRoiPoolBackward, NanInfiniteAndHugeBoxes) {
  std::mt19937 rng(3);
  for (float ratio : {0.0f, 2.0f}) {
    const DeformRoiPoolBackward op = Backward(1, 3, 1, ratio, 0.1f);
    std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 8, 8}, 5, rng);
    inputs[2] = HostTensor::Of(DType::kF32, {5, 5}, {0, NAN,  0,    4,        4,    //
                                                     0, 0,    0,    INFINITY, 4,    //
                                                     0, 0,    0,    4,        4,    //
                                                     0, -1e6, -1e6, 1e6,      1e6,  //
                                                     0, 1e38, 1e38, -1e38,    -1e38});
    inputs[3].set(2 * 6, NAN);
    inputs[3].set(2 * 6 + 4, INFINITY);
    inputs[3].set(2 * 6 + 5, 1e30);
    ExpectMatchesReference(op, inputs);
  }
}

TEST(DeformRoiPoolBackward, EmptyInputs) {
  std::mt19937 rng(4);
  const DeformRoiPoolBackward op = Backward(2, 2, 1, 2, 0.1f);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {2, 3, 5, 4}, 0, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 0, 4}, 2, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 0, 4, 4}, 2, rng));
}

TEST(DeformRoiPoolBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  const DeformRoiPoolBackward op = Backward(2, 3, 1, 2, 0.1f);
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {2, 3, 5, 4}, 2, rng);
  inputs[2].set(5, 2);
  ExpectError(op, inputs, {"'rois'[1, 0]: expected a batch index in [0, 2), got 2"});
  inputs[3] = HostTensor::Full(DType::kF32, {2, 2, 3, 2}, 0);
  ExpectError(op, inputs, {"'offset'", "expected dimension 2", "got 3", "(pooled_height) = 2"});
}

}  // namespace
}  // namespace polyop::testing

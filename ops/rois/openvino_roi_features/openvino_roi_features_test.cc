// SPDX-License-Identifier: Apache-2.0
// The pooling is that of multi_level_roi_align, which has the thorough test; this one tests the definition.
// tests/runtimes/test_openvino.py compares it with OpenVINO's kernel.
#include "ops/rois/openvino_roi_features/openvino_roi_features.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

OpenvinoRoiFeatures SmallPyramid() {
  OpenvinoRoiFeatures op;
  op.output_size = 3;
  op.pyramid_scales = {{4, 8, 16}, 3};
  return op;
}

// Boxes of 20 to 320 pixels on an image of 256 pixels.
std::vector<HostTensor> Inputs(DType dtype, int64_t count, std::mt19937& rng) {
  std::uniform_real_distribution<double> at(-20, 200), size(20, 320);
  HostTensor rois(dtype, {count, 4});
  for (int64_t r = 0; r < count; ++r) {
    const double x = at(rng), y = at(rng), values[4] = {x, y, x + size(rng), y + size(rng)};
    for (int k = 0; k < 4; ++k) rois.set(4 * r + k, values[k]);
  }
  return {std::move(rois), HostTensor::Uniform(dtype, {1, 5, 64, 60}, rng),
          HostTensor::Uniform(dtype, {1, 5, 32, 30}, rng), HostTensor::Uniform(dtype, {1, 5, 16, 15}, rng)};
}

TEST(OpenvinoRoiFeatures, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (int i = 0; i < 6; ++i) {
      OpenvinoRoiFeatures op = SmallPyramid();
      op.sampling_ratio = i % 3;
      op.aligned = i % 2 == 1;
      ExpectMatchesReference(op, Inputs(dtype, i == 5 ? 0 : 9, rng), ToleranceFor(dtype));
    }
  }
}

TEST(OpenvinoRoiFeatures, BoxesWithoutAreaAreOfTheFirstLevel) {
  std::mt19937 rng(2);
  OpenvinoRoiFeatures op = SmallPyramid();
  op.aligned = true;
  std::vector<HostTensor> inputs = Inputs(DType::kF32, 2, rng);
  const double boxes[2][4] = {{30, 40, 20, 60}, {NAN, 0, 300, 300}};
  for (int64_t i = 0; i < 8; ++i) inputs[0].set(i, boxes[i / 4][i % 4]);
  for (int64_t i = 0; i < inputs[1].size(); ++i) inputs[1].set(i, 7);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(op, inputs, &out).ok());
  for (int64_t i = 0; i < 45; ++i) {
    EXPECT_NEAR(out[0].at(i), 7, 1e-5) << i;
    EXPECT_EQ(out[0].at(45 + i), 0) << i;
  }
}

TEST(OpenvinoRoiFeatures, RejectsInvalidInputs) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = Inputs(DType::kF32, 2, rng);
  OpenvinoRoiFeatures op = SmallPyramid();
  op.pyramid_scales.count = 2;
  ExpectError(op, inputs, {"'pyramid_scales': expected 3 values, one for each of 'feats', got 2"});
  inputs[2] = HostTensor::Full(DType::kF32, {2, 5, 8, 8}, 0);
  ExpectError(SmallPyramid(), inputs, {"'feats'", "expected dimension 0 to be 1, got 2"});
  ExpectAttributeError(*FindOp("openvino_roi_features"), {}, {"'pyramid_scales' is missing"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
// Shared tests of pooling from a feature pyramid. P is the operator's struct, a RoiPyramidRule. rois(dtype, count, rng)
// returns boxes with batch indices 0 and 1.
#pragma once

#include <cmath>
#include <vector>

#include "ops/rois/roi_pyramid_rule.h"
#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {

/// Returns boxes of 2 to 120 pixels on an image of 64 pixels, so that every level is used and some boxes extend beyond
/// the image.
inline HostTensor UprightPyramidRois(DType dtype, int64_t count, std::mt19937& rng) {
  std::uniform_real_distribution<double> at(-10, 60), size(2, 120);
  HostTensor rois(dtype, {count, 5});
  for (int64_t r = 0; r < count; ++r) {
    const double x = at(rng), y = at(rng);
    const double values[5] = {static_cast<double>(r % 2), x, y, x + size(rng), y + size(rng) * 0.7};
    for (int k = 0; k < 5; ++k) rois.set(5 * r + k, values[k]);
  }
  return rois;
}

/// The same for rotated boxes.
inline HostTensor RotatedPyramidRois(DType dtype, int64_t count, std::mt19937& rng) {
  std::uniform_real_distribution<double> at(-10, 60), size(2, 120), angle(-3, 3);
  HostTensor rois(dtype, {count, 6});
  for (int64_t r = 0; r < count; ++r) {
    const double values[6] = {static_cast<double>(r % 2), at(rng), at(rng), size(rng), size(rng) * 0.7, angle(rng)};
    for (int k = 0; k < 6; ++k) rois.set(6 * r + k, values[k]);
  }
  return rois;
}

/// Returns attributes for three levels of an image of 64 x 64 pixels.
template <class P>
P SmallPyramid() {
  P op;
  op.output_height = 3;
  op.output_width = 2;
  op.featmap_strides = {{4, 8, 16}, 3};
  op.finest_scale = 12;
  return op;
}

template <class Rois>
std::vector<HostTensor> PyramidInputs(const Rois& rois, DType dtype, int64_t count, int64_t channels,
                                      std::mt19937& rng) {
  return {rois(dtype, count, rng), HostTensor::Uniform(dtype, {2, channels, 16, 15}, rng),
          HostTensor::Uniform(dtype, {2, channels, 8, 9}, rng), HostTensor::Uniform(dtype, {2, channels, 4, 5}, rng)};
}

/// Returns attributes that differ with i. `vary(i, op)` sets those that only this operator has.
template <class P, class Vary>
P VariedPyramid(int i, const Vary& vary) {
  P op = SmallPyramid<P>();
  op.sampling_ratio = i % 3;
  op.aligned = i % 4 < 2;
  op.roi_scale_factor = i % 5 == 0 ? 1.5f : 0.0f;
  vary(i, op);
  return op;
}

template <class P, class Rois, class Vary>
void ExpectPyramidMatchesReference(const Rois& rois, DType dtype, const Vary& vary) {
  std::mt19937 rng(1);
  for (int i = 0; i < 24; ++i) {
    const P op = VariedPyramid<P>(i, vary);
    ExpectMatchesReference(op, PyramidInputs(rois, dtype, 12, i % 2 ? 17 : 3, rng), ToleranceFor(dtype));
  }
}

template <class P, class Rois>
void ExpectNoBoxesAndNanBoxesOfPyramid(const Rois& rois) {
  std::mt19937 rng(2);
  ExpectMatchesReference(SmallPyramid<P>(), PyramidInputs(rois, DType::kF32, 0, 3, rng));
  std::vector<HostTensor> inputs = PyramidInputs(rois, DType::kF32, 3, 3, rng);
  const int64_t width = inputs[0].shape()[1];
  inputs[0].set(width + 1, NAN);
  inputs[0].set(2 * width + 3, INFINITY);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(SmallPyramid<P>(), inputs, &out).ok());
  for (int64_t i = 18; i < out[0].size(); ++i) EXPECT_EQ(out[0].at(i), 0);
}

template <class P, class Rois>
void ExpectPyramidRefusesBadInput(const Rois& rois) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = PyramidInputs(rois, DType::kF32, 2, 3, rng);
  P op = SmallPyramid<P>();
  op.featmap_strides.count = 2;
  ExpectError(op, inputs, {"'featmap_strides': expected 3 values, one for each of 'feats', got 2"});
  inputs[0].set(0, 2);
  ExpectError(SmallPyramid<P>(), inputs, {"'rois'[0, 0]: expected a batch index in [0, 2), got 2"});
  inputs[2] = HostTensor::Full(DType::kF32, {2, 4, 8, 8}, 0);
  ExpectError(SmallPyramid<P>(), inputs, {"'feats'", "expected dimension 1 to be C = 3", "got 4"});
  ExpectAttributeError(*FindOp(P::kName), {}, {"'featmap_strides' is missing"});
  ExpectAttributeError(*FindOp(P::kName), {{"featmap_strides", AttrValue::Floats({4, 0})}},
                       {"'featmap_strides': expected", "got 0"});
}

/// The inputs of the gradient: those of the operator after a random gradient.
template <class G, class Rois>
std::vector<HostTensor> PyramidGradientInputs(const G& op, const Rois& rois, DType dtype, int64_t count,
                                              int64_t channels, std::mt19937& rng) {
  std::vector<HostTensor> inputs = PyramidInputs(rois, dtype, count, channels, rng);
  inputs.insert(inputs.begin(), HostTensor::Uniform(dtype, {count, channels, op.output_height, op.output_width}, rng));
  return inputs;
}

/// Tests of the gradient G of the operator P.
template <class G, class Rois, class Vary>
void ExpectPyramidGradientMatchesReference(const Rois& rois, DType dtype, const Vary& vary) {
  std::mt19937 rng(4);
  for (int i = 0; i < 24; ++i) {
    const G op = VariedPyramid<G>(i, vary);
    ExpectMatchesReference(op, PyramidGradientInputs(op, rois, dtype, i == 7 ? 0 : 12, i % 2 ? 17 : 3, rng),
                           ToleranceFor(dtype));
  }
}

/// Averages are linear in the maps, so <grad, pool(x)> = <backward(grad), x>.
template <class G, class P, class Rois>
void ExpectPyramidGradientIsTheAdjoint(const Rois& rois) {
  std::mt19937 rng(5);
  const G op = SmallPyramid<G>();
  const std::vector<HostTensor> inputs = PyramidGradientInputs(op, rois, DType::kF32, 40, 20, rng);
  std::vector<HostTensor> grad, pooled;
  ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
  ASSERT_TRUE(
      testing::Run(static_cast<const P&>(op), std::vector<HostTensor>(inputs.begin() + 1, inputs.end()), &pooled).ok());
  double got = 0;
  int64_t at = 0;
  for (size_t level = 2; level < inputs.size(); ++level) {
    for (int64_t i = 0; i < inputs[level].size(); ++i) got += inputs[level].at(i) * grad[0].at(at++);
  }
  EXPECT_EQ(at, grad[0].size());
  EXPECT_NEAR(got, InnerProduct(pooled[0], inputs[0]), 1e-3);
}

template <class G, class Rois>
void ExpectPyramidGradientRefusesBadInput(const Rois& rois) {
  std::mt19937 rng(6);
  const G op = SmallPyramid<G>();
  const std::vector<HostTensor> good = PyramidGradientInputs(op, rois, DType::kF32, 2, 3, rng);
  std::vector<HostTensor> inputs = good;
  inputs[0] = HostTensor::Full(DType::kF32, {2, 3, 3, 3}, 0);
  ExpectError(op, inputs, {"'grad_output'", "(output_width) = 2"});
  inputs = good;
  inputs.pop_back();
  ExpectError(op, inputs, {"'featmap_strides': expected 2 values, one for each of 'feats', got 3"});
  inputs = good;
  inputs[1].set(0, 2);
  ExpectError(op, inputs, {"'rois'[0, 0]: expected a batch index in [0, 2), got 2"});
}

}  // namespace polyop::testing

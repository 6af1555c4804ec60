// SPDX-License-Identifier: Apache-2.0
// The kernel is shared with ms_deform_attn_backward, whose test is detailed; this file tests the row layout and the
// softmax.
#include "ops/deform/flash_deform_attn/flash_deform_attn_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

FlashDeformAttnBackward Backward(int64_t points) {
  FlashDeformAttnBackward op;
  op.points = points;
  return op;
}

// Two levels of 5 x 3 and 2 x 2 pixels.
std::vector<HostTensor> Inputs(const FlashDeformAttn& op, DType dtype, int64_t images, int64_t queries, int64_t heads,
                               int64_t depth, std::mt19937& rng, DType index = DType::kI64) {
  return {HostTensor::Uniform(dtype, {images, queries, heads * depth}, rng),
          HostTensor::Uniform(dtype, {images, 19, heads, depth}, rng), HostTensor::Of(index, {2, 2}, {5, 3, 2, 2}),
          HostTensor::Of(index, {2}, {0, 15}),
          HostTensor::Uniform(dtype, {images, queries, heads, 2 * op.points * 3}, rng, -0.3, 1.3)};
}

TEST(FlashDeformAttnBackward, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Tolerance tolerance = ToleranceFor(dtype);
    tolerance.absolute *= 20;  // sums of many products
    for (DType index : {DType::kI32, DType::kI64}) {
      for (int64_t points : {1, 4, 9}) {
        for (int64_t depth : {3, 32}) {
          const FlashDeformAttnBackward op = Backward(points);
          const std::vector<HostTensor> inputs = Inputs(op, dtype, 2, 7, 3, depth, rng, index);
          ExpectAllMasksMatchReference(op, inputs, 2, tolerance);
        }
      }
    }
  }
}

// The output is linear in the values, and the weights of a head do not change if all its logits grow by the same.
TEST(FlashDeformAttnBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const FlashDeformAttnBackward op = Backward(3);
  const std::vector<HostTensor> inputs = Inputs(op, DType::kF32, 2, 40, 4, 24, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(static_cast<const FlashDeformAttn&>(op), {inputs.begin() + 1, inputs.end()}, &output).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < output[0].size(); ++i) left += output[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grads[0].size(); ++i) right += grads[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-3);
  for (int64_t row = 0; row < grads[1].size(); row += 18) {
    double sum = 0;
    for (int64_t s = 12; s < 18; ++s) sum += grads[1].at(row + s);
    EXPECT_NEAR(sum, 0, 1e-5) << row;
  }
}

TEST(FlashDeformAttnBackward, EmptyInputs) {
  std::mt19937 rng(3);
  ExpectMatchesReference(Backward(2), Inputs(Backward(2), DType::kF32, 0, 3, 2, 8, rng));
  ExpectMatchesReference(Backward(2), Inputs(Backward(2), DType::kF32, 1, 0, 2, 8, rng));
  ExpectMatchesReference(Backward(2), Inputs(Backward(2), DType::kF32, 1, 3, 0, 8, rng));
  ExpectMatchesReference(Backward(2), Inputs(Backward(2), DType::kF32, 1, 3, 2, 0, rng));
}

// A NaN logit, gradient or location affects its own query and head.
TEST(FlashDeformAttnBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  const FlashDeformAttnBackward op = Backward(2);
  const std::vector<HostTensor> good = Inputs(op, DType::kF32, 1, 4, 2, 5, rng);
  std::vector<HostTensor> inputs = good, grads;
  inputs[4].set(3 * 12, NAN);      // a location of query 1, head 1
  inputs[4].set(4 * 12 + 9, NAN);  // a logit of query 2, head 0
  inputs[0].set(3 * 10 + 7, NAN);  // the gradient of query 3, head 1
  ASSERT_TRUE(testing::Run(op, inputs, &grads).ok());
  for (int64_t pair = 0; pair < 8; ++pair) {
    bool has_nan = false;
    for (int64_t i = 0; i < 12; ++i) has_nan |= std::isnan(grads[1].at(pair * 12 + i));
    EXPECT_EQ(has_nan, pair == 4 || pair == 7) << pair;
  }
  inputs = good;
  for (int64_t i = 0; i < 8; ++i) inputs[4].set(i, i % 2 ? NAN : INFINITY);
  ExpectMatchesReference(op, inputs, {1e-5, 1e-4});
}

TEST(FlashDeformAttnBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  std::vector<HostTensor> inputs = Inputs(Backward(2), DType::kF32, 2, 7, 2, 5, rng);
  inputs[3] = HostTensor::Of(DType::kI64, {2}, {0, 16});
  ExpectError(Backward(2), inputs,
              {"'spatial_shapes'[1]: expected a level within the 19 pixels of 'value', got (2, 2)"});
  inputs[0] = HostTensor::Full(DType::kF32, {2, 7, 11}, 0);
  ExpectError(Backward(2), inputs, {"'grad_output'", "G*D = 10", "got 11"});
}

}  // namespace
}  // namespace polyop::testing

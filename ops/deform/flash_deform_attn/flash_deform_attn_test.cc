// SPDX-License-Identifier: Apache-2.0
// The kernel is shared with ms_deform_attn, which tests it in detail; this file tests the row layout and the softmax.
#include "ops/deform/flash_deform_attn/flash_deform_attn.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Two levels of 5 x 3 and 2 x 2 pixels.
std::vector<HostTensor> Inputs(const FlashDeformAttn& op, DType dtype, int64_t heads, int64_t depth, std::mt19937& rng,
                               DType index = DType::kI64) {
  return {HostTensor::Uniform(dtype, {2, 19, heads, depth}, rng), HostTensor::Of(index, {2, 2}, {5, 3, 2, 2}),
          HostTensor::Of(index, {2}, {0, 15}),
          HostTensor::Uniform(dtype, {2, 7, heads, 2 * op.points * 3}, rng, -0.3, 1.3)};
}

TEST(FlashDeformAttn, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (DType index : {DType::kI32, DType::kI64}) {
      for (int64_t points : {1, 4, 9}) {
        for (int64_t depth : {3, 16, 32}) {
          const FlashDeformAttn op{points};
          ExpectMatchesReference(op, Inputs(op, dtype, 3, depth, rng, index), ToleranceFor(dtype));
        }
      }
    }
  }
}

// With all locations at pixel centres and equal logits, the output is the average.
TEST(FlashDeformAttn, LocationsThenLogits) {
  std::mt19937 rng(2);
  const FlashDeformAttn op{1};
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, 1, 1, rng), out;
  // Pixel (1, 2) of the first level, (0, 1) of the second.
  const double row[6] = {2.5 / 3, 1.5 / 5, 1.5 / 2, 0.5 / 2, 30, 30};
  for (int64_t i = 0; i < inputs[3].size(); ++i) inputs[3].set(i, row[i % 6]);
  ASSERT_TRUE(testing::Run(op, inputs, &out).ok());
  EXPECT_NEAR(out[0].at(0), (inputs[0].at(1 * 3 + 2) + inputs[0].at(15 + 1)) / 2, 1e-5);
  for (int64_t i = 4; i < inputs[3].size(); i += 6) inputs[3].set(i, 30 + std::log(3));
  ASSERT_TRUE(testing::Run(op, inputs, &out).ok());
  EXPECT_NEAR(out[0].at(0), inputs[0].at(1 * 3 + 2) * 0.75 + inputs[0].at(15 + 1) * 0.25, 1e-5);
}

TEST(FlashDeformAttn, NonFiniteLocationsAndLogits) {
  std::mt19937 rng(3);
  const FlashDeformAttn op{2};
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, 2, 5, rng), out;
  for (int64_t i = 0; i < 24; ++i) inputs[3].set(i, i < 12 ? (i % 2 ? NAN : INFINITY) : inputs[3].at(i));
  for (int64_t i = 8; i < 12; ++i) inputs[3].set(i, 0);  // only the first head's locations stay invalid
  inputs[3].set(24 + 8, NAN);                            // a logit of the second query's first head
  ASSERT_TRUE(testing::Run(op, inputs, &out).ok());
  for (int64_t d = 0; d < 5; ++d) {
    EXPECT_EQ(out[0].at(d), 0);
    EXPECT_TRUE(std::isfinite(out[0].at(5 + d)));
    EXPECT_TRUE(std::isnan(out[0].at(10 + d)));
  }
}

TEST(FlashDeformAttn, RejectsInvalidInputs) {
  std::mt19937 rng(4);
  const FlashDeformAttn op{2};
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, 2, 5, rng);
  inputs[2] = HostTensor::Of(DType::kI64, {2}, {0, 16});
  ExpectError(op, inputs, {"'spatial_shapes'[1]: expected a level within the 19 pixels of 'value', got (2, 2)"});
  inputs = Inputs(FlashDeformAttn{3}, DType::kF32, 2, 5, rng);
  ExpectError(op, inputs, {"'loc_attn'", "expected dimension 3 to be L*points*3 = 12", "got 18"});
  ExpectAttributeError(*FindOp("flash_deform_attn"), {}, {"'points'"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
// The kernel is that of ms_deform_attn_backward, whose test is detailed.
#include "ops/deform/ms_deform_attn_by_head/ms_deform_attn_by_head_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(int64_t images, int64_t queries, int64_t depth, DType dtype, DType index,
                               std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {images, queries, 3, depth}, rng),
          HostTensor::Uniform(dtype, {images, 26, 3, depth}, rng),
          HostTensor::Of(index, {2, 2}, {4, 5, 2, 3}),
          HostTensor::Of(index, {2}, {0, 20}),
          HostTensor::Uniform(dtype, {images, queries, 3, 2, 4, 2}, rng, -0.3, 1.3),
          HostTensor::Uniform(dtype, {images, queries, 3, 2, 4}, rng, 0, 1)};
}

class MsDeformAttnByHeadBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(MsDeformAttnByHeadBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 20;  // sums of many products
  for (const DType index : {DType::kI32, DType::kI64}) {
    for (int64_t depth : {1, 16, 35}) {
      const std::vector<HostTensor> inputs = Inputs(2, 7, depth, GetParam(), index, rng);
      ExpectAllMasksMatchReference(MsDeformAttnByHeadBackward{}, inputs, 3, tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MsDeformAttnByHeadBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MsDeformAttnByHeadBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = Inputs(2, 30, 24, DType::kF32, DType::kI32, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(MsDeformAttnByHeadBackward{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(MsDeformAttnByHead{}, {inputs.begin() + 1, inputs.end()}, &output).ok());
  double product = 0, of_values = 0, of_weights = 0;
  for (int64_t i = 0; i < output[0].size(); ++i) product += output[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grads[0].size(); ++i) of_values += grads[0].at(i) * inputs[1].at(i);
  for (int64_t i = 0; i < grads[2].size(); ++i) of_weights += grads[2].at(i) * inputs[5].at(i);
  EXPECT_NEAR(product, of_values, 1e-3);
  EXPECT_NEAR(product, of_weights, 1e-3);
}

TEST(MsDeformAttnByHeadBackward, EmptyAndInvalidInputs) {
  std::mt19937 rng(3);
  ExpectMatchesReference(MsDeformAttnByHeadBackward{}, Inputs(1, 0, 8, DType::kF32, DType::kI32, rng));
  ExpectMatchesReference(MsDeformAttnByHeadBackward{}, Inputs(0, 2, 8, DType::kF32, DType::kI32, rng));
  std::vector<HostTensor> inputs = Inputs(1, 3, 8, DType::kF32, DType::kI32, rng);
  for (int64_t i = 0; i < inputs[4].size(); i += 3) inputs[4].set(i, i % 2 ? NAN : INFINITY);
  ExpectMatchesReference(MsDeformAttnByHeadBackward{}, inputs, {1e-5, 1e-4});
  inputs[2].set(0, 6);
  ExpectError(MsDeformAttnByHeadBackward{}, inputs,
              {"'spatial_shapes'[0]: expected a level within the 26 pixels of 'value', got (6, 5)"});
  inputs[0] = HostTensor::Full(DType::kF32, {1, 3, 2, 8}, 0);
  ExpectError(MsDeformAttnByHeadBackward{}, inputs, {"'grad_output'", "'value'"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/ms_deform_attn_by_head/ms_deform_attn_by_head.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(int64_t images, int64_t queries, int64_t depth, DType dtype, DType index,
                               std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {images, 26, 3, depth}, rng), HostTensor::Of(index, {2, 2}, {4, 5, 2, 3}),
          HostTensor::Of(index, {2}, {0, 20}),
          HostTensor::Uniform(dtype, {images, queries, 3, 2, 4, 2}, rng, -0.3, 1.3),
          HostTensor::Uniform(dtype, {images, queries, 3, 2, 4}, rng, 0, 1)};
}

class MsDeformAttnByHeadTest : public ::testing::TestWithParam<DType> {};

TEST_P(MsDeformAttnByHeadTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());  // for sums of 8 samples
  tolerance.absolute *= 5;
  for (const DType index : {DType::kI32, DType::kI64}) {
    for (int64_t depth : {1, 16, 35}) {
      ExpectMatchesReference(MsDeformAttnByHead{}, Inputs(2, 7, depth, GetParam(), index, rng), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MsDeformAttnByHeadTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MsDeformAttnByHead, KeepsHeadsSeparate) {
  std::mt19937 rng(2);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(MsDeformAttnByHead{}, Inputs(2, 7, 8, DType::kF32, DType::kI32, rng), &out).ok());
  EXPECT_EQ(out[0].shape(), (Shape{2, 7, 3, 8}));
}

TEST(MsDeformAttnByHead, EmptyAndInvalidInputs) {
  std::mt19937 rng(3);
  ExpectMatchesReference(MsDeformAttnByHead{}, Inputs(1, 0, 8, DType::kF32, DType::kI32, rng));
  std::vector<HostTensor> inputs = Inputs(1, 3, 8, DType::kF32, DType::kI32, rng);
  for (int64_t i = 0; i < inputs[3].size(); i += 3) inputs[3].set(i, i % 2 ? NAN : INFINITY);
  ExpectMatchesReference(MsDeformAttnByHead{}, inputs);
  inputs[1].set(0, 6);
  ExpectError(MsDeformAttnByHead{}, inputs,
              {"'spatial_shapes'[0]: expected a level within the 26 pixels of 'value', got (6, 5)"});
}

}  // namespace
}  // namespace polyop::testing

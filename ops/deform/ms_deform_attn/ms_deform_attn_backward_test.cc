// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/ms_deform_attn/ms_deform_attn_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batch, queries, heads, depth, points;
  std::vector<double> shapes;  // height, width of each level
};

std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, std::mt19937& rng) {
  const auto levels = static_cast<int64_t>(s.shapes.size() / 2);
  std::vector<double> starts;
  double spatial = 0;
  for (size_t l = 0; l < s.shapes.size(); l += 2) {
    starts.push_back(spatial);
    spatial += s.shapes[l] * s.shapes[l + 1];
  }
  return {HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads * s.depth}, rng),
          HostTensor::Uniform(dtype, {s.batch, static_cast<int64_t>(spatial), s.heads, s.depth}, rng),
          HostTensor::Of(DType::kI64, {levels, 2}, s.shapes),
          HostTensor::Of(DType::kI64, {levels}, starts),
          HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads, levels, s.points, 2}, rng, -0.3, 1.3),
          HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads, levels, s.points}, rng, 0, 1)};
}

// Sums of many products of values below 1. The gradients of locations are multiplied by the level's extents.
Tolerance ToleranceOfSums(DType dtype) {
  Tolerance tolerance = ToleranceFor(dtype);
  tolerance.absolute *= 20;
  return tolerance;
}

class MsDeformAttnBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(MsDeformAttnBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t depth : {1, 3, 8, 16, 17, 32, 33, 64, 100}) {
    for (const Sizes& s : {Sizes{1, 1, 1, depth, 1, {4, 5}}, Sizes{2, 7, 3, depth, 4, {5, 3, 2, 2, 1, 1}},
                           Sizes{1, 40, 2, depth, 2, {8, 8, 4, 4}}}) {
      ExpectMatchesReference(MsDeformAttnBackward{}, Inputs(s, GetParam(), rng), ToleranceOfSums(GetParam()));
    }
  }
}

// Few reads of each pixel, so that float values are read, and their gradients accumulated, in the tensors.
TEST_P(MsDeformAttnBackwardTest, FewQueries) {
  std::mt19937 rng(2);
  ExpectMatchesReference(MsDeformAttnBackward{}, Inputs({2, 5, 3, 32, 2, {24, 24, 6, 5}}, GetParam(), rng),
                         ToleranceOfSums(GetParam()));
}

// One head of many queries, which several tasks share.
TEST_P(MsDeformAttnBackwardTest, QueriesInBlocks) {
  std::mt19937 rng(3);
  ExpectMatchesReference(MsDeformAttnBackward{}, Inputs({1, 2000, 1, 20, 8, {24, 24, 6, 5}}, GetParam(), rng),
                         {GetParam() == DType::kF32 ? 2e-4 : 2e-2, GetParam() == DType::kF32 ? 2e-4 : 4e-2});
}

INSTANTIATE_TEST_SUITE_P(Types, MsDeformAttnBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MsDeformAttnBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(4);
  for (const Sizes& sizes : {Sizes{2, 70, 2, 16, 4, {5, 3, 2, 2}}, Sizes{1, 3, 2, 16, 1, {15, 13}}}) {
    const std::vector<HostTensor> inputs = Inputs(sizes, DType::kF32, rng);
    ExpectOnlyRequestedGradients(MsDeformAttnBackward{}, inputs, 3);
  }
}

// The output is linear in the values and in the weights.
TEST(MsDeformAttnBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(5);
  const std::vector<HostTensor> inputs = Inputs({2, 60, 4, 24, 3, {9, 13, 5, 4}}, DType::kF32, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(MsDeformAttnBackward{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(MsDeformAttn{}, {inputs.begin() + 1, inputs.end()}, &output).ok());
  EXPECT_NEAR(InnerProduct(output[0], inputs[0]), InnerProduct(grads[0], inputs[1]), 1e-3);
  EXPECT_NEAR(InnerProduct(output[0], inputs[0]), InnerProduct(grads[2], inputs[5]), 1e-3);
}

TEST(MsDeformAttnBackward, EmptyAndNotANumber) {
  std::mt19937 rng(6);
  const auto matches = [&](const Sizes& sizes) {
    ExpectMatchesReference(MsDeformAttnBackward{}, Inputs(sizes, DType::kF32, rng), {1e-5, 1e-4});
  };
  matches({0, 3, 2, 8, 2, {4, 4}});
  matches({1, 0, 2, 8, 2, {4, 4}});
  matches({1, 3, 0, 8, 2, {4, 4}});
  matches({1, 3, 2, 0, 2, {4, 4}});
  matches({1, 3, 2, 8, 0, {4, 4}});
  matches({1, 3, 2, 8, 2, {0, 4}});
  matches({1, 3, 2, 8, 2, {4, 4, 0, 3}});
  std::vector<HostTensor> inputs = Inputs({1, 3, 2, 8, 2, {4, 4}}, DType::kF32, rng);
  for (int64_t i = 0; i < inputs[4].size(); i += 3) inputs[4].set(i, i % 2 ? NAN : INFINITY);
  inputs[5].set(0, NAN);  // the weight of a sample without pixels
  ExpectMatchesReference(MsDeformAttnBackward{}, inputs, {1e-5, 1e-4});
}

TEST(MsDeformAttnBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(7);
  std::vector<HostTensor> inputs = Inputs({1, 2, 1, 4, 1, {4, 4}}, DType::kF32, rng);
  inputs[4] = HostTensor::Of(DType::kF32, {1, 2, 1, 1, 1, 2}, {0.375, 0.375, 0.875, 0.875});  // pixels (1, 1), (3, 3)
  inputs[0].set(2, NAN);
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(MsDeformAttnBackward{}, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 5 * 4 + 2) << i;
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(std::isnan(grads[2].at(i)), i == 0);
  inputs[0].set(2, 0.5);
  inputs[5].set(1, NAN);  // of pixel (3, 3)
  ExpectMatchesReference(MsDeformAttnBackward{}, inputs, {1e-5, 1e-4});
  ASSERT_TRUE(testing::Run(MsDeformAttnBackward{}, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i / 4 == 15) << i;
}

TEST(MsDeformAttnBackward, RejectsInvalidInputs) {
  std::mt19937 rng(8);
  const std::vector<HostTensor> good = Inputs({1, 3, 2, 8, 2, {4, 4, 2, 2}}, DType::kF32, rng);
  const auto with = [&](size_t index, HostTensor tensor) {
    std::vector<HostTensor> inputs = good;
    inputs[index] = std::move(tensor);
    return inputs;
  };
  ExpectError(MsDeformAttnBackward{}, with(0, HostTensor::Full(DType::kF32, {1, 3, 15}, 0)),
              {"'grad_output'", "M*D = 16"});
  ExpectError(MsDeformAttnBackward{}, with(2, HostTensor::Of(DType::kI64, {2, 2}, {4, 4, 3, 2})),
              {"'spatial_shapes'[1]: expected a level within the 20 pixels of 'value', got (3, 2)"});
  ExpectError(MsDeformAttnBackward{}, with(3, HostTensor::Of(DType::kI64, {2}, {0, -1})),
              {"'level_start_index'[1] = -1"});
  ExpectError(MsDeformAttnBackward{}, with(5, HostTensor::Full(DType::kF32, {1, 3, 2, 2, 3}, 0)),
              {"'attention_weights'", "to be P = 2"});
}

}  // namespace
}  // namespace polyop::testing

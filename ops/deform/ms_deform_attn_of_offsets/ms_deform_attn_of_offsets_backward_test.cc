// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batch, queries, heads, depth, points, groups;
  std::vector<double> shapes;  // height, width of each level
};

std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, std::mt19937& rng, DType index = DType::kI32) {
  const auto levels = static_cast<int64_t>(s.shapes.size() / 2);
  int64_t spatial = 0;
  for (size_t l = 0; l < s.shapes.size(); l += 2) spatial += static_cast<int64_t>(s.shapes[l] * s.shapes[l + 1]);
  return {HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads, s.depth}, rng),
          HostTensor::Uniform(dtype, {s.batch, spatial, s.heads, s.depth}, rng),
          HostTensor::Of(index, {levels, 2}, s.shapes),
          HostTensor::Uniform(dtype, {s.batch, s.queries, 1, 2 * s.groups}, rng, -0.1, 1.1),
          HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads, levels * s.points * 2}, rng, -2, 2),
          HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads, levels * s.points}, rng, -3, 3)};
}

class MsDeformAttnOfOffsetsBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(MsDeformAttnOfOffsetsBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 20;  // sums of many products
  for (int64_t depth : {1, 8, 33}) {
    for (const Sizes& s : {Sizes{1, 1, 1, depth, 1, 1, {4, 5}}, Sizes{2, 7, 3, depth, 8, 4, {5, 3, 2, 2, 1, 1}},
                           Sizes{1, 40, 2, depth, 6, 4, {8, 8, 4, 4}}, Sizes{1, 3, 2, depth, 300, 7, {8, 8}}}) {
      for (const DType index : {DType::kI32, DType::kI64}) {
        ExpectMatchesReference(MsDeformAttnOfOffsetsBackward{}, Inputs(s, GetParam(), rng, index), tolerance);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MsDeformAttnOfOffsetsBackwardTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MsDeformAttnOfOffsetsBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = Inputs({2, 7, 2, 16, 4, 2, {5, 3, 2, 2}}, DType::kF32, rng);
  ExpectOnlyRequestedGradients(MsDeformAttnOfOffsetsBackward{}, inputs, 4);
}

TEST(MsDeformAttnOfOffsetsBackward, EmptyAndNotANumber) {
  std::mt19937 rng(3);
  const auto expect = [](const std::vector<HostTensor>& inputs) {
    ExpectMatchesReference(MsDeformAttnOfOffsetsBackward{}, inputs, {1e-5, 1e-4});
  };
  expect(Inputs({0, 3, 2, 8, 2, 1, {4, 4}}, DType::kF32, rng));
  expect(Inputs({1, 0, 2, 8, 2, 1, {4, 4}}, DType::kF32, rng));
  expect(Inputs({1, 3, 0, 8, 2, 1, {4, 4}}, DType::kF32, rng));
  expect(Inputs({1, 3, 2, 8, 0, 1, {4, 4}}, DType::kF32, rng));
  expect(Inputs({1, 3, 2, 8, 2, 1, {}}, DType::kF32, rng));
  expect(Inputs({1, 3, 2, 8, 2, 1, {0, 3, 4, 4}}, DType::kF32, rng));
  for (const size_t input : {size_t{3}, size_t{4}}) {  // samples at such positions have no gradients
    std::vector<HostTensor> inputs = Inputs({1, 3, 2, 8, 4, 2, {4, 4}}, DType::kF32, rng);
    for (int64_t i = 0; i < inputs[input].size(); i += 5) inputs[input].set(i, i % 2 ? NAN : INFINITY);
    expect(inputs);
  }
}

// The gradient of one query and head is NaN: so are those of its samples, and no others.
TEST(MsDeformAttnOfOffsetsBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = Inputs({1, 4, 1, 4, 2, 1, {9, 9}}, DType::kF32, rng);
  for (int64_t i = 0; i < inputs[3].size(); ++i) inputs[3].set(i, 0.5);
  inputs[0].set(5, NAN);
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(MsDeformAttnOfOffsetsBackward{}, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) EXPECT_TRUE(i % 4 == 1 || !std::isnan(grads[0].at(i))) << i;
  for (size_t o = 1; o < 4; ++o) {
    const int64_t each = grads[o].size() / 4;
    for (int64_t i = 0; i < grads[o].size(); ++i) EXPECT_EQ(std::isnan(grads[o].at(i)), i / each == 1) << o << " " << i;
  }
}

TEST(MsDeformAttnOfOffsetsBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  const std::vector<HostTensor> good = Inputs({1, 3, 2, 8, 2, 2, {4, 4, 2, 2}}, DType::kF32, rng);
  const auto rejects = [&](size_t index, const HostTensor& tensor, const std::vector<std::string>& parts) {
    std::vector<HostTensor> inputs = good;
    inputs[index] = tensor;
    ExpectError(MsDeformAttnOfOffsetsBackward{}, inputs, parts);
  };
  rejects(0, HostTensor::Full(DType::kF32, {1, 3, 2, 7}, 0), {"D = 7"});
  rejects(2, HostTensor::Of(DType::kI32, {2, 2}, {4, 4, 3, 2}),
          {"'spatial_shapes'[1]: expected at most the 4 remaining pixels of 'value', got (3, 2)"});
  rejects(2, HostTensor::Of(DType::kI32, {3, 2}, {2, 2, 2, 2, 2, 2}),
          {"'sampling_offsets'", "multiple of 2 * L = 6 in dimension 3"});
  rejects(3, HostTensor::Full(DType::kF32, {1, 3, 1, 3}, 0),
          {"'reference_points'", "expected a positive multiple of 2 in dimension 3, got shape [1, 3, 1, 3]"});
}

}  // namespace
}  // namespace polyop::testing

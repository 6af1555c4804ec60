// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets.h"

#include <cmath>

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
  return {HostTensor::Uniform(dtype, {s.batch, spatial, s.heads, s.depth}, rng),
          HostTensor::Of(index, {levels, 2}, s.shapes),
          HostTensor::Uniform(dtype, {s.batch, s.queries, 1, 2 * s.groups}, rng, -0.1, 1.1),
          HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads, levels * s.points * 2}, rng, -2, 2),
          HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads, levels * s.points}, rng, -3, 3)};
}

class MsDeformAttnOfOffsetsTest : public ::testing::TestWithParam<DType> {};

TEST_P(MsDeformAttnOfOffsetsTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t depth : {1, 8, 33}) {
    for (const Sizes& s : {Sizes{1, 1, 1, depth, 1, 1, {4, 5}}, Sizes{2, 7, 3, depth, 8, 4, {5, 3, 2, 2, 1, 1}},
                           Sizes{1, 40, 2, depth, 6, 4, {8, 8, 4, 4}}, Sizes{1, 3, 2, depth, 300, 7, {8, 8}}}) {
      for (const DType index : {DType::kI32, DType::kI64}) {
        ExpectMatchesReference(MsDeformAttnOfOffsets{}, Inputs(s, GetParam(), rng, index), ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MsDeformAttnOfOffsetsTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// One level of 1 x 4 pixels and two points: offsets are in pixels, points alternate between the reference points, and
// weights are the softmax of logits.
TEST(MsDeformAttnOfOffsets, OffsetsArePixelsAndWeightsLogits) {
  const auto f32 = [](const Shape& shape, const std::vector<double>& values) {
    return HostTensor::Of(DType::kF32, shape, values);
  };
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(MsDeformAttnOfOffsets{},
                           {f32({1, 4, 1, 1}, {1, 2, 4, 8}), HostTensor::Of(DType::kI32, {1, 2}, {1, 4}),
                            f32({1, 1, 1, 4}, {0.125, 0.5, 0.875, 0.5}), f32({1, 1, 1, 4}, {1, 0, -1, 0}),
                            f32({1, 1, 1, 2}, {std::log(3.0), 0})},
                           &out)
                  .ok());
  // The pixel to the right of pixel 0 with weight 3/4, and the pixel to the left of pixel 3 with weight 1/4.
  EXPECT_NEAR(out[0].at(0), 0.75 * 2 + 0.25 * 4, 1e-6);
}

TEST(MsDeformAttnOfOffsets, EmptyAndNotANumber) {
  std::mt19937 rng(3);
  const auto expect = [](const std::vector<HostTensor>& inputs) {
    ExpectMatchesReference(MsDeformAttnOfOffsets{}, inputs);
  };
  expect(Inputs({0, 3, 2, 8, 2, 1, {4, 4}}, DType::kF32, rng));
  expect(Inputs({1, 0, 2, 8, 2, 1, {4, 4}}, DType::kF32, rng));
  expect(Inputs({1, 3, 2, 8, 0, 1, {4, 4}}, DType::kF32, rng));
  expect(Inputs({1, 3, 2, 8, 2, 1, {}}, DType::kF32, rng));
  expect(Inputs({1, 3, 2, 8, 2, 1, {0, 3, 4, 4}}, DType::kF32, rng));
  for (const size_t input : {size_t{2}, size_t{3}, size_t{4}}) {
    std::vector<HostTensor> inputs = Inputs({1, 3, 2, 8, 4, 2, {4, 4}}, DType::kF32, rng);
    for (int64_t i = 0; i < inputs[input].size(); i += 5) inputs[input].set(i, i % 2 ? NAN : INFINITY);
    expect(inputs);
    for (int64_t i = 0; i < inputs[input].size(); ++i) inputs[input].set(i, -INFINITY);
    expect(inputs);
  }
}

TEST(MsDeformAttnOfOffsets, RejectsInvalidInputs) {
  std::mt19937 rng(4);
  const std::vector<HostTensor> good = Inputs({1, 3, 2, 8, 2, 2, {4, 4, 2, 2}}, DType::kF32, rng);
  const auto with = [&](size_t index, HostTensor tensor) {
    std::vector<HostTensor> inputs = good;
    inputs[index] = std::move(tensor);
    return inputs;
  };
  const auto rejects = [](const std::vector<HostTensor>& inputs, const std::vector<std::string>& parts) {
    ExpectError(MsDeformAttnOfOffsets{}, inputs, parts);
  };
  rejects(with(1, HostTensor::Of(DType::kI32, {2, 2}, {4, 4, 3, 2})),
          {"'spatial_shapes'[1]: expected at most the 4 remaining pixels of 'value', got (3, 2)"});
  rejects(with(1, HostTensor::Of(DType::kI32, {2, 2}, {4, 4, 2, -2})),
          {"'spatial_shapes'[1]: expected at most the 4 remaining pixels of 'value', got (2, -2)"});
  rejects(with(1, HostTensor::Of(DType::kI64, {2, 2}, {4e18, 4e18, 2, 2})), {"'spatial_shapes'[0]"});
  rejects(with(1, HostTensor::Of(DType::kI32, {3, 2}, {2, 2, 2, 2, 2, 2})),
          {"'sampling_offsets'", "multiple of 2 * L = 6 in dimension 3"});
  rejects(with(2, HostTensor::Full(DType::kF32, {1, 3, 1, 3}, 0)),
          {"'reference_points'", "expected a positive multiple of 2 in dimension 3, got shape [1, 3, 1, 3]"});
  rejects(with(2, HostTensor::Full(DType::kF32, {1, 3, 2, 4}, 0)),
          {"'reference_points'", "expected dimension 2 to be 1, got 2"});
  rejects(with(4, HostTensor::Full(DType::kF32, {1, 3, 2, 5}, 0)),
          {"'attention_weights'", "expected dimension 3", "got 5"});
}

}  // namespace
}  // namespace polyop::testing

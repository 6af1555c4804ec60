// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/ms_deform_attn/ms_deform_attn.h"

#include <cmath>

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
  return {HostTensor::Uniform(dtype, {s.batch, static_cast<int64_t>(spatial), s.heads, s.depth}, rng),
          HostTensor::Of(DType::kI64, {levels, 2}, s.shapes), HostTensor::Of(DType::kI64, {levels}, starts),
          HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads, levels, s.points, 2}, rng, -0.3, 1.3),
          HostTensor::Uniform(dtype, {s.batch, s.queries, s.heads, levels, s.points}, rng, 0, 1)};
}

class MsDeformAttnTest : public ::testing::TestWithParam<DType> {};

TEST_P(MsDeformAttnTest, MatchesReference) {
  std::mt19937 rng(1);
  // Sums of up to 24 samples of values below 1; positions are in float.
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 5;
  for (int64_t depth : {1, 3, 8, 16, 17, 32, 33, 64, 100}) {
    for (const Sizes& s : {Sizes{1, 1, 1, depth, 1, {4, 5}}, Sizes{2, 7, 3, depth, 4, {5, 3, 2, 2, 1, 1}},
                           Sizes{1, 40, 2, depth, 2, {8, 8, 4, 4}}}) {
      const std::vector<HostTensor> inputs = Inputs(s, GetParam(), rng);
      ExpectMatchesReference(MsDeformAttn{}, inputs, tolerance);
    }
  }
}

// The values exceed one megabyte and each pixel is read eight times, so heads are copied.
TEST_P(MsDeformAttnTest, LargeValuesThatAreReadOften) {
  std::mt19937 rng(5);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 5;
  ExpectMatchesReference(MsDeformAttn{}, Inputs({2, 80, 16, 60, 8, {24, 24, 6, 5}}, GetParam(), rng), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Types, MsDeformAttnTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MsDeformAttn, NarrowIndicesGiveTheSameResult) {
  std::mt19937 rng(2);
  std::vector<HostTensor> inputs = Inputs({1, 5, 2, 16, 4, {5, 3, 2, 2}}, DType::kF32, rng), wide, narrow;
  ASSERT_TRUE(testing::Run(MsDeformAttn{}, inputs, &wide).ok());
  inputs[1] = inputs[1].Cast(DType::kI32);
  inputs[2] = inputs[2].Cast(DType::kI32);
  ASSERT_TRUE(testing::Run(MsDeformAttn{}, inputs, &narrow).ok());
  EXPECT_TRUE(wide[0].SameBytes(narrow[0]));
}

TEST(MsDeformAttn, EmptyAndNotANumber) {
  std::mt19937 rng(3);
  ExpectMatchesReference(MsDeformAttn{}, Inputs({0, 3, 2, 8, 2, {4, 4}}, DType::kF32, rng));
  ExpectMatchesReference(MsDeformAttn{}, Inputs({1, 0, 2, 8, 2, {4, 4}}, DType::kF32, rng));
  ExpectMatchesReference(MsDeformAttn{}, Inputs({1, 3, 2, 8, 0, {4, 4}}, DType::kF32, rng));
  ExpectMatchesReference(MsDeformAttn{}, Inputs({1, 3, 2, 8, 2, {4, 4, 0, 3}}, DType::kF32, rng));
  ExpectMatchesReference(MsDeformAttn{}, Inputs({1, 3, 2, 8, 2, {0, 3}}, DType::kF32, rng));
  std::vector<HostTensor> inputs = Inputs({1, 3, 2, 8, 2, {4, 4}}, DType::kF32, rng);
  for (int64_t i = 0; i < inputs[3].size(); i += 3) inputs[3].set(i, i % 2 ? NAN : INFINITY);
  ExpectMatchesReference(MsDeformAttn{}, inputs);
}

TEST(MsDeformAttn, RejectsInvalidInputs) {
  std::mt19937 rng(4);
  const std::vector<HostTensor> good = Inputs({1, 3, 2, 8, 2, {4, 4, 2, 2}}, DType::kF32, rng);
  const auto with = [&](size_t index, HostTensor tensor) {
    std::vector<HostTensor> inputs = good;
    inputs[index] = std::move(tensor);
    return inputs;
  };
  ExpectError(MsDeformAttn{}, with(1, HostTensor::Of(DType::kI64, {2, 2}, {4, 4, 3, 2})),
              {"'spatial_shapes'[1]: expected a level within the 20 pixels of 'value', got (3, 2)"});
  ExpectError(MsDeformAttn{}, with(1, HostTensor::Of(DType::kI64, {2, 2}, {-1, 4, 2, 2})),
              {"'spatial_shapes'[0]: expected a level within the 20 pixels of 'value', got (-1, 4)"});
  ExpectError(MsDeformAttn{}, with(1, HostTensor::Of(DType::kI64, {2, 2}, {4e18, 4e18, 2, 2})),
              {"'spatial_shapes'[0]"});
  ExpectError(MsDeformAttn{}, with(2, HostTensor::Of(DType::kI64, {2}, {0, -1})), {"'level_start_index'[1] = -1"});
  ExpectError(MsDeformAttn{}, with(2, HostTensor::Of(DType::kI64, {3}, {0, 1, 2})),
              {"'level_start_index'", "to be L = 2"});
  ExpectError(MsDeformAttn{}, with(4, HostTensor::Full(DType::kF32, {1, 3, 2, 2, 3}, 0)),
              {"'attention_weights'", "to be P = 2"});
  const AnyTensor many{nullptr, DType::kF32, true, {1, int64_t{1} << 31, 1, 1}};
  EXPECT_EQ(MsDeformAttn{}.CheckInputs({&many, 1}).message(),
            "'value': expected at most 2147483647 pixels, got 2147483648");
  ExpectError(MsDeformAttn{}, with(0, HostTensor::Full(DType::kF32, {1, 20, 16}, 0)),
              {"'value': expected rank 4, got 3"});
}

}  // namespace
}  // namespace polyop::testing

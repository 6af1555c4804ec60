// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/indice_conv/indice_conv_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t rows, channels, filters, columns, outputs, offsets;
};

IndiceConvBackward Backward(bool subm) {
  IndiceConvBackward op;
  op.is_subm = subm;
  return op;
}

// Pairs may occur twice, and columns beyond the counts are garbage that must be ignored.
std::vector<HostTensor> Inputs(bool subm, const Sizes& s, DType type, DType index, std::mt19937& rng) {
  HostTensor pairs = HostTensor::Full(index, {2, s.offsets, s.columns}, -9), counts(index, {s.offsets});
  for (int64_t f = 0; f < s.offsets; ++f) {
    counts.set(f,
               s.rows == 0 || s.outputs == 0 ? 0.0 : static_cast<double>(rng() % static_cast<uint64_t>(s.columns + 1)));
  }
  for (int64_t f = 0; f < s.offsets; ++f) {
    const double count = counts.at(subm && f > s.offsets / 2 ? s.offsets - 1 - f : f);
    for (int64_t j = 0; j < count; ++j) {
      pairs.set(f * s.columns + j, static_cast<double>(rng() % static_cast<uint64_t>(s.rows)));
      pairs.set((s.offsets + f) * s.columns + j, static_cast<double>(rng() % static_cast<uint64_t>(s.outputs)));
    }
  }
  return {HostTensor::Uniform(type, {s.outputs, s.filters}, rng),
          HostTensor::Uniform(type, {s.rows, s.channels}, rng),
          HostTensor::Uniform(type, {s.filters, 1, s.offsets, 1, s.channels}, rng),
          pairs,
          counts,
          HostTensor::Full(index, {}, static_cast<double>(s.outputs))};
}

class IndiceConvBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(IndiceConvBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of many products
  for (const bool subm : {false, true}) {
    for (const Sizes& s : {Sizes{40, 5, 17, 30, 40, 3}, Sizes{50, 33, 70, 60, 20, 9}, Sizes{9, 64, 6, 8, 9, 1},
                           Sizes{1100, 3, 130, 400, 1000, 2}}) {
      ExpectMatchesReference(Backward(subm), Inputs(subm, s, GetParam(), rng() % 2 ? DType::kI32 : DType::kI64, rng),
                             tolerance);
    }
  }
}

// Channels in multiples of 8, which a GPU copies by pieces of 16 bytes: more pairs, and more offsets, than a block
// keeps.
TEST_P(IndiceConvBackwardTest, PiecesOfChannels) {
  std::mt19937 rng(6);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 20;
  ExpectMatchesReference(Backward(false), Inputs(false, {70, 72, 16, 1300, 60, 3}, GetParam(), DType::kI32, rng),
                         tolerance);
  ExpectMatchesReference(Backward(true), Inputs(true, {140, 16, 24, 40, 40, 35}, GetParam(), DType::kI32, rng),
                         tolerance);
}

INSTANTIATE_TEST_SUITE_P(Types, IndiceConvBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(IndiceConvBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  for (const bool subm : {false, true}) {
    const std::vector<HostTensor> inputs = Inputs(subm, {200, 19, 20, 150, 180, 5}, DType::kF32, DType::kI32, rng);
    IndiceConv forward;
    forward.is_subm = subm;
    std::vector<HostTensor> grads, output;
    ASSERT_TRUE(testing::Run(Backward(subm), inputs, &grads).ok());
    ASSERT_TRUE(testing::Run(forward, {inputs.begin() + 1, inputs.end()}, &output).ok());
    const double expected = InnerProduct(output[0], inputs[0]);
    EXPECT_NEAR(expected, InnerProduct(grads[0], inputs[1]), 1e-2);
    EXPECT_NEAR(expected, InnerProduct(grads[1], inputs[2]), 1e-2);
  }
}

TEST(IndiceConvBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = Inputs(false, {30, 5, 7, 20, 25, 3}, DType::kF16, DType::kI32, rng);
  ExpectOnlyRequestedGradients(Backward(false), inputs, 2);
}

TEST(IndiceConvBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = Inputs(true, {6, 2, 3, 1, 6, 3}, DType::kF32, DType::kI32, rng);
  inputs[3] = HostTensor::Of(DType::kI32, {2, 3, 1}, {0, 9, 1, 1, 9, 0});  // rows 0 and 1 are neighbours
  inputs[4] = HostTensor::Of(DType::kI32, {3}, {1, 0, 0});
  inputs[0].set(0, NAN);  // output 0
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(Backward(true), inputs, &grads).ok());
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i < 4) << i;
  for (int64_t i = 0; i < 18; ++i) EXPECT_EQ(std::isnan(grads[1].at(i)), i >= 2 && i < 6) << i;
}

TEST(IndiceConvBackward, Empty) {
  std::mt19937 rng(5);
  for (const Sizes& s : {Sizes{0, 3, 4, 5, 0, 3}, Sizes{4, 0, 4, 5, 3, 3}, Sizes{4, 3, 0, 5, 3, 3},
                         Sizes{4, 3, 4, 0, 3, 3}, Sizes{4, 3, 4, 5, 0, 3}}) {
    for (const bool subm : {false, true}) {
      ExpectMatchesReference(Backward(subm), Inputs(subm, s, DType::kF32, DType::kI32, rng));
    }
  }
}

TEST(IndiceConvBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  std::vector<HostTensor> inputs = Inputs(false, {4, 3, 2, 5, 6, 3}, DType::kF32, DType::kI32, rng);
  ExpectError(Backward(true), inputs, {"'grad_out': expected at most 4 rows, as 'features' has, got 6"});
  inputs[5] = HostTensor::Full(DType::kI32, {}, 5);
  ExpectError(Backward(false), inputs, {"'num_act_out': expected 6, the number of rows of 'grad_out', got 5"});
  inputs[5] = HostTensor::Full(DType::kI32, {}, 6);
  inputs[4].set(1, 6);
  ExpectError(Backward(false), inputs,
              {"'indice_num_per_loc': expected a number of pairs in [0, 5] for offset 1, got 6"});
}

}  // namespace
}  // namespace polyop::testing

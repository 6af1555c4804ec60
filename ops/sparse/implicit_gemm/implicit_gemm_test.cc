// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/implicit_gemm/implicit_gemm.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t rows, channels, filters, outputs;
  Shape kernel;
};

// Every third pair is missing; some of them have a value below -1.
HostTensor RandomPairs(const Sizes& s, DType index, std::mt19937& rng) {
  HostTensor pairs(index, {s.kernel[0] * s.kernel[1] * s.kernel[2], s.outputs});
  for (int64_t i = 0; i < pairs.size(); ++i) {
    const bool none = s.rows == 0 || rng() % 3 == 0;
    pairs.set(i, none ? -1.0 - rng() % 2 : static_cast<double>(rng() % static_cast<uint64_t>(s.rows)));
  }
  return pairs;
}

// The mask and the order are garbage, because they are ignored.
std::vector<HostTensor> Inputs(const Sizes& s, DType type, DType index, bool bias, std::mt19937& rng) {
  return {HostTensor::Uniform(type, {s.rows, s.channels}, rng),
          HostTensor::Uniform(type, {s.filters, s.kernel[0], s.kernel[1], s.kernel[2], s.channels}, rng),
          RandomPairs(s, index, rng),
          HostTensor::Full(index, {s.outputs, 1}, 77),
          HostTensor::Full(index, {s.outputs}, -5),
          bias ? HostTensor::Uniform(type, {s.filters}, rng) : HostTensor::Absent()};
}

class ImplicitGemmRandom : public ::testing::TestWithParam<DType> {};

TEST_P(ImplicitGemmRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(12); ++round) {
    const Sizes sizes{static_cast<int64_t>(rng() % 50), static_cast<int64_t>(rng() % 40),
                      static_cast<int64_t>(rng() % 80), static_cast<int64_t>(rng() % 60),
                      Shape{static_cast<int64_t>(1 + rng() % 2), static_cast<int64_t>(1 + rng() % 3), 1}};
    ImplicitGemm op;
    op.act_type = static_cast<SparseActivation>(rng() % 4);
    op.act_alpha = 0.125f;
    SCOPED_TRACE(Concat("round ", round, ": ", sizes.rows, " rows of ", sizes.channels, " channels, ", sizes.outputs,
                        " outputs of ", sizes.filters));
    ExpectMatchesReference(op, Inputs(sizes, GetParam(), rng() % 2 ? DType::kI32 : DType::kI64, rng() % 2, rng),
                           ToleranceFor(GetParam()));
  }
}

TEST_P(ImplicitGemmRandom, ManyBlocksAndDeepChannels) {
  std::mt19937 rng(2);
  for (const int64_t filters : {8, 40}) {
    const Sizes sizes{300, 140, filters, 1100, {1, 1, 2}};
    ExpectMatchesReference(ImplicitGemm{}, Inputs(sizes, GetParam(), DType::kI32, true, rng), ToleranceFor(GetParam()));
  }
}

// Channels in multiples of 8, which a GPU copies by pieces of 16 bytes: in f16 and bf16, several offsets in a step or
// several steps of an offset, and more offsets than a block keeps at a time, of which some have no pairs.
TEST_P(ImplicitGemmRandom, PiecesOfChannels) {
  std::mt19937 rng(3);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 4;  // sums of hundreds of products
  for (const Sizes& sizes :
       {Sizes{50, 8, 16, 150, {3, 4, 3}}, Sizes{50, 24, 70, 140, {1, 3, 2}}, Sizes{50, 72, 16, 20, {1, 2, 2}}}) {
    ImplicitGemm op;
    op.act_type = sizes.channels == 24 ? SparseActivation::kSigmoid : SparseActivation::kNone;
    std::vector<HostTensor> inputs = Inputs(sizes, GetParam(), DType::kI32, sizes.channels == 8, rng);
    const int64_t offsets = inputs[2].shape()[0];
    for (int64_t i = offsets / 4 * sizes.outputs; i < offsets / 2 * sizes.outputs; ++i) inputs[2].set(i, -1);
    ExpectMatchesReference(op, inputs, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ImplicitGemmRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Two rows of one channel and a filter of two positions: output 0 has both as inputs, output 1 has none.
std::vector<double> OutputsOfTwoRows(const ImplicitGemm& op, const std::vector<double>& features) {
  std::vector<HostTensor> out;
  const Status status =
      Run(op,
          {HostTensor::Of(DType::kF32, {2, 1}, features), HostTensor::Of(DType::kF32, {1, 1, 1, 2, 1}, {2, -3}),
           HostTensor::Of(DType::kI32, {2, 2}, {0, -1, 1, -7}), HostTensor::Full(DType::kI32, {2, 1}, 0),
           HostTensor::Full(DType::kI32, {2}, 0), HostTensor::Full(DType::kF32, {1}, -0.5)},
          &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(ImplicitGemm, BiasAndActivationReachEveryOutput) {
  ImplicitGemm op;
  EXPECT_EQ(OutputsOfTwoRows(op, {1, 2}), (std::vector<double>{-4.5, -0.5}));
  op.act_type = SparseActivation::kRelu;
  EXPECT_EQ(OutputsOfTwoRows(op, {2, 1}), (std::vector<double>{0.5, 0}));
  op.act_type = SparseActivation::kLeakyRelu;
  op.act_alpha = 0.25f;
  EXPECT_EQ(OutputsOfTwoRows(op, {1, 2}), (std::vector<double>{-1.125, -0.125}));
  op.act_type = SparseActivation::kSigmoid;
  EXPECT_NEAR(OutputsOfTwoRows(op, {1, 2})[0], 1 / (1 + std::exp(4.5)), 1e-6);
}

TEST(ImplicitGemm, NanReachesOnlyTheOutputsOfItsRow) {
  ImplicitGemm op;
  op.act_type = SparseActivation::kRelu;
  const std::vector<double> out = OutputsOfTwoRows(op, {NAN, 2});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 0);
}

TEST(ImplicitGemm, SameAtAnyAlignment) {
  std::mt19937 rng(4);
  ExpectSameAtAnyAlignment(ImplicitGemm{}, Inputs({300, 33, 35, 400, {3, 1, 3}}, DType::kF32, DType::kI32, true, rng));
}

TEST(ImplicitGemm, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  std::vector<HostTensor> inputs = Inputs({4, 3, 2, 5, {1, 3, 1}}, DType::kF32, DType::kI64, false, rng);
  inputs[2].set(7, 4);
  ExpectError(ImplicitGemm{}, inputs,
              {"'pair_fwd' at flat index 7: expected a row of 'features' in [0, 4) or a negative number, got 4"});
  inputs[2] = HostTensor::Full(DType::kI64, {4, 5}, 0);
  ExpectError(ImplicitGemm{}, inputs, {"'pair_fwd'", "[4, 5]", "KZ * KY * KX = 3"});
  inputs[0] = HostTensor::Full(DType::kF32, {4, 2}, 0);
  ExpectError(ImplicitGemm{}, inputs, {"C = 2"});
  const Op& op = *FindOp(ImplicitGemm::kName);
  ExpectAttributeError(op, {{"is_train", AttrValue::Int(1)}}, {"'is_train': expected 0, got 1"});
  ExpectAttributeError(op, {{"output_scale", AttrValue::Float(2)}}, {"'output_scale': expected 1, got 2"});
  ExpectAttributeError(op, {{"output_add_scale", AttrValue::Float(1)}}, {"'output_add_scale': expected 0, got 1"});
  ExpectAttributeError(op, {{"act_type", AttrValue::Int(4)}}, {"'act_type'"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/scaled_dot_product_attention/scaled_dot_product_attention.h"

#include <array>
#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Attention = ScaledDotProductAttention;

std::vector<HostTensor> Inputs(DType dtype, int64_t b, int64_t l, int64_t s, int64_t e, int64_t v, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {b, l, e}, rng, -2, 2), HostTensor::Uniform(dtype, {b, s, e}, rng, -2, 2),
          HostTensor::Uniform(dtype, {b, s, v}, rng)};
}

TEST(Attention, AveragesValuesOfEqualKeys) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(
      polyop::testing::Run(Attention{},
                           {HostTensor::Full(DType::kF32, {1, 1, 4}, 1), HostTensor::Full(DType::kF32, {1, 2, 4}, 1),
                            HostTensor::Of(DType::kF32, {1, 2, 1}, {3, 5})},
                           &out)
          .ok());
  EXPECT_FLOAT_EQ(static_cast<float>(out[0].at(0)), 4);
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{0.5, 0.5}));
}

TEST(Attention, ScalesByTheRootOfTheSize) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(polyop::testing::Run(Attention{},
                                   {HostTensor::Full(DType::kF32, {1, 1, 4}, 1),
                                    HostTensor::Of(DType::kF32, {1, 2, 4}, {1, 1, 1, 1, 0, 0, 0, 0}),
                                    HostTensor::Of(DType::kF32, {1, 2, 1}, {1, 0})},
                                   &out)
                  .ok());
  EXPECT_NEAR(out[0].at(0), 1 / (1 + std::exp(-2.0)), 1e-6);  // logits 4 / sqrt(4) and 0
}

class AttentionTypes : public ::testing::TestWithParam<DType> {};

TEST_P(AttentionTypes, RandomShapesAndMasks) {
  std::mt19937 rng(1);
  const int64_t kSizes[] = {1, 2, 3, 7, 16, 17, 33, 64, 100};
  for (int round = 0; round < Rounds(100); ++round) {
    const int64_t b = 1 + rng() % 3, l = kSizes[rng() % 9], s = kSizes[rng() % 9], e = kSizes[rng() % 8],
                  v = kSizes[rng() % 8];
    std::vector<HostTensor> inputs = Inputs(GetParam(), b, l, s, e, v, rng);
    const Shape kMasks[] = {{l, s}, {b, l, s}, {1, s}, {s}, {b, 1, s}, {l, 1}, {1, l, s}, {}};
    if (rng() % 3) {
      HostTensor mask = HostTensor::Uniform(GetParam(), kMasks[rng() % 8], rng, -3, 3);
      for (int64_t i = 0; i < mask.size(); ++i) {
        if (rng() % 5 == 0) mask.set(i, -INFINITY);
      }
      inputs.push_back(mask);
    }
    SCOPED_TRACE(Concat("round ", round, ": ", b, " x ", l, " queries, ", s, " keys of ", e, ", values of ", v));
    ExpectMatchesReference(Attention{}, inputs, ToleranceFor(GetParam()));
  }
}

TEST_P(AttentionTypes, TilesOfQueriesKeysAndValues) {
  std::mt19937 rng(2);
  ExpectMatchesReference(Attention{}, Inputs(GetParam(), 2, 150, 70, 20, 130, rng), ToleranceFor(GetParam()));
}

// Components in multiples of 8, which a GPU copies by pieces of 16 bytes; keys that are none are continued by zeros.
TEST_P(AttentionTypes, PiecesOfComponents) {
  std::mt19937 rng(8);
  for (const auto& [l, s, e, v] : {std::array<int64_t, 4>{150, 70, 40, 72}, {3, 75, 8, 8}, {5, 0, 8, 8}}) {
    std::vector<HostTensor> inputs = Inputs(GetParam(), 2, l, s, e, v, rng);
    if (s == 75) inputs.push_back(HostTensor::Uniform(GetParam(), {l, s}, rng));
    ExpectMatchesReference(Attention{}, inputs, ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionTypes, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Attention, ManyKeys) {
  std::mt19937 rng(2);
  ExpectMatchesReference(Attention{}, Inputs(DType::kF32, 2, 50, 3001, 32, 40, rng));
  ExpectMatchesReference(Attention{}, Inputs(DType::kF32, 1, 3, 20000, 8, 5, rng));
}

TEST(Attention, LargeScoresAreStable) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = Inputs(DType::kF32, 1, 5, 40, 16, 8, rng);
  for (int64_t i = 0; i < inputs[0].size(); ++i) inputs[0].set(i, std::floor(inputs[0].at(i) * 4) * 256);
  for (int64_t i = 0; i < inputs[1].size(); ++i) inputs[1].set(i, std::floor(inputs[1].at(i) * 4));
  ExpectMatchesReference(Attention{}, inputs);
}

TEST(Attention, RowsWithoutAFiniteMaximumAreNan) {
  std::mt19937 rng(4);
  for (double odd : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
    for (int64_t keys : {3, 40}) {
      std::vector<HostTensor> inputs = Inputs(DType::kF32, 1, 4, keys, 8, 8, rng);
      HostTensor mask = HostTensor::Full(DType::kF32, {4, keys}, 0);
      for (int64_t s = 0; s < keys; ++s) mask.set(keys + s, -INFINITY);  // query 1: all keys are excluded
      mask.set(2 * keys + 1, odd);
      inputs.push_back(mask);
      ExpectMatchesReference(Attention{}, inputs);
      std::vector<HostTensor> out;
      ASSERT_TRUE(polyop::testing::Run(Attention{}, inputs, &out).ok());
      EXPECT_TRUE(std::isnan(out[0].at(8)));
      EXPECT_TRUE(std::isnan(out[1].at(keys)));
      EXPECT_FALSE(std::isnan(out[0].at(0)));
    }
  }
}

TEST(Attention, EmptyInputs) {
  std::mt19937 rng(5);
  ExpectMatchesReference(Attention{}, Inputs(DType::kF32, 0, 3, 4, 5, 6, rng));
  ExpectMatchesReference(Attention{}, Inputs(DType::kF32, 2, 0, 4, 5, 6, rng));
  ExpectMatchesReference(Attention{}, Inputs(DType::kF32, 2, 3, 0, 5, 6, rng));
  ExpectMatchesReference(Attention{}, Inputs(DType::kF32, 2, 3, 4, 0, 6, rng));
  ExpectMatchesReference(Attention{}, Inputs(DType::kF32, 2, 3, 4, 5, 0, rng));
}

TEST(Attention, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const auto f32 = [&](const Shape& shape) { return HostTensor::Uniform(DType::kF32, shape, rng); };
  const HostTensor q = f32({2, 3, 4}), k = f32({2, 5, 4}), v = f32({2, 5, 6});
  ExpectError(Attention{}, {q, f32({2, 5, 3}), v}, {"'k'", "to be E = 4", "(shape [2, 5, 3] for"});
  ExpectError(Attention{}, {q, f32({1, 5, 4}), v}, {"'k'", "to be B = 2", "(shape [1, 5, 4] for"});
  ExpectError(Attention{}, {q, k, f32({2, 4, 6})}, {"'v'", "to be S = 5", "(shape [2, 4, 6] for"});
  ExpectError(Attention{}, {f32({3, 4}), k, v}, {"'q': expected rank 3, got 2"});
  ExpectError(Attention{}, {q, k, v, f32({5, 3})},
              {"'mask': expected a shape that broadcasts to [B, L, S] = [2, 3, 5], got [5, 3]"});
  ExpectError(Attention{}, {q, k, v, f32({1, 2, 3, 5})}, {"got [1, 2, 3, 5]"});
  ExpectError(Attention{}, {q, k, v, HostTensor::Full(DType::kBool, {3, 5}, 1)}, {"no kernel takes inputs"});
  ExpectError(Attention{}, {q, k}, {"inputs, got 2"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter/embedding_bag/embedding_bag.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = EmbeddingBag::Mode;
constexpr Mode kAll[] = {Mode::kSum, Mode::kMean, Mode::kMax};

HostTensor Integers(DType dtype, const std::vector<double>& values) {
  return HostTensor::Of(dtype, {static_cast<int64_t>(values.size())}, values);
}

class EmbeddingBagRandom : public ::testing::TestWithParam<DType> {};

TEST_P(EmbeddingBagRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(90); ++round) {
    const int64_t rows = 1 + rng() % 60, channels = rng() % 3 ? rng() % 90 : 128, bags = rng() % 30;
    EmbeddingBag op;
    op.mode = kAll[round % 3];
    op.include_last_offset = rng() % 2;
    op.padding_idx = rng() % 2 ? -1 : static_cast<int64_t>(rng() % 60);
    std::vector<double> offsets, indices;
    for (int64_t m = 0; m < bags; ++m) {
      offsets.push_back(static_cast<double>(indices.size()));
      for (int64_t left = rng() % 9; left > 0; --left) indices.push_back(static_cast<double>(rng() % rows));
    }
    if (op.include_last_offset) offsets.push_back(static_cast<double>(indices.size()));
    const int64_t count = static_cast<int64_t>(indices.size());
    HostTensor weight = HostTensor::Uniform(GetParam(), {rows, channels}, rng, -1, 1);
    for (int64_t i = 0; i < weight.size() && round % 5 == 0; i += 1 + rng() % 9)
      weight.set(i, rng() % 3 ? NAN : INFINITY);
    const DType index = rng() % 2 ? DType::kI32 : DType::kI64;
    std::vector<HostTensor> inputs = {weight, Integers(index, indices), Integers(index, offsets)};
    if (op.mode == Mode::kSum && rng() % 2) inputs.push_back(HostTensor::Uniform(GetParam(), {count}, rng, -1, 1));
    SCOPED_TRACE(Concat("round ", round, ": ", bags, " bags of ", count, " indices, ", channels, " channels"));
    ExpectMatchesReference(op, inputs, ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingBagRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> Reduced(const EmbeddingBag& op, const std::vector<double>& table,
                            const std::vector<double>& indices, const std::vector<double>& offsets) {
  std::vector<HostTensor> out;
  const HostTensor weight = HostTensor::Of(DType::kF32, {static_cast<int64_t>(table.size()), 1}, table);
  const Status status =
      testing::Run(op, {weight, Integers(DType::kI64, indices), Integers(DType::kI64, offsets)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(EmbeddingBag, EveryModeWithAndWithoutRows) {
  const std::vector<double> table = {2, 4, 10}, indices = {2, 0, 2, 1}, offsets = {0, 3, 3, 4};
  EmbeddingBag op;
  EXPECT_EQ(Reduced(op, table, indices, offsets), (std::vector<double>{22, 0, 4, 0}));
  op.padding_idx = 2;
  EXPECT_EQ(Reduced(op, table, indices, offsets), (std::vector<double>{2, 0, 4, 0}));
  op.mode = Mode::kMean;
  op.include_last_offset = 1;
  EXPECT_EQ(Reduced(op, table, indices, offsets), (std::vector<double>{2, 0, 4}));
  op.mode = Mode::kMax;
  op.padding_idx = -1;
  EXPECT_EQ(Reduced(op, table, indices, offsets), (std::vector<double>{10, 0, 4}));
  EXPECT_EQ(Reduced(op, table, indices, {0, 1}), (std::vector<double>{10}));  // the indices from 1 on are in no bag
}

TEST(EmbeddingBag, MaxKeepsNanOfTheFirstRow) {
  EmbeddingBag op;
  op.mode = Mode::kMax;
  op.padding_idx = 3;
  const std::vector<double> got = Reduced(op, {NAN, 1, -INFINITY, 5}, {3, 0, 1, 1, 0, 2, 2, 3}, {0, 3, 5, 7});
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_EQ(got[1], 1);
  EXPECT_EQ(got[2], -INFINITY);
  EXPECT_EQ(got[3], 0);
}

TEST(EmbeddingBag, NoBags) {
  EXPECT_TRUE(Reduced({}, {1, 2}, {0, 1}, {}).empty());
  EXPECT_TRUE(Reduced({.include_last_offset = 1}, {1, 2}, {}, {0}).empty());
}

TEST(EmbeddingBag, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  std::vector<double> indices;
  for (int i = 0; i < 3000; ++i) indices.push_back(static_cast<double>(rng() % 500));
  ExpectSameAtAnyAlignment(EmbeddingBag{},
                           {HostTensor::Uniform(DType::kF32, {500, 48}, rng), Integers(DType::kI32, indices),
                            Integers(DType::kI32, {0, 7, 8, 900, 2000})});
}

TEST(EmbeddingBag, RejectsInvalidInputs) {
  const HostTensor weight = HostTensor::Full(DType::kF32, {4, 2}, 1);
  const HostTensor indices = Integers(DType::kI64, {0, 3, 1});
  const auto expect = [&](const EmbeddingBag& op, const std::vector<double>& offsets,
                          const std::vector<std::string>& parts) {
    ExpectError(op, {weight, indices, Integers(DType::kI64, offsets)}, parts);
  };
  expect({}, {0, 3, 2}, {"'offsets'[2]: expected a value in [3, 3]", "got 2"});
  expect({}, {0, 4}, {"'offsets'[1]: expected a value in [0, 3]", "got 4"});
  expect({}, {1}, {"'offsets'[0]: expected 0, got 1"});
  expect({.include_last_offset = 1}, {}, {"'offsets': expected at least 1 element with include_last_offset"});
  ExpectError(EmbeddingBag{}, {weight, Integers(DType::kI32, {0, 4}), Integers(DType::kI32, {0})},
              {"'indices' at flat index 1: expected a row of 'weight' in [0, 4), got 4"});
  ExpectError(EmbeddingBag{.mode = Mode::kMax},
              {weight, indices, Integers(DType::kI64, {0}), HostTensor::Full(DType::kF32, {3}, 1)},
              {"'per_sample_weights': expected none, except in mode sum"});
  ExpectAttributeError(*FindOp("embedding_bag"), {{"padding_idx", AttrValue::Int(-2)}}, {"'padding_idx'", "-2"});
}

}  // namespace
}  // namespace polyop::testing

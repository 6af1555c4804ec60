// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/indice_conv/indice_conv.h"

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t rows, channels, filters, columns, outputs, offsets;
};

// Pairs may occur twice, and columns beyond the counts are garbage that must be ignored.
std::vector<HostTensor> Inputs(const IndiceConv& op, const Sizes& s, DType type, DType index, std::mt19937& rng) {
  HostTensor pairs = HostTensor::Full(index, {2, s.offsets, s.columns}, -9), counts(index, {s.offsets});
  for (int64_t f = 0; f < s.offsets; ++f) {
    counts.set(f,
               s.rows == 0 || s.outputs == 0 ? 0.0 : static_cast<double>(rng() % static_cast<uint64_t>(s.columns + 1)));
  }
  for (int64_t f = 0; f < s.offsets; ++f) {
    const double count = counts.at(op.is_subm && f > s.offsets / 2 ? s.offsets - 1 - f : f);
    for (int64_t j = 0; j < count; ++j) {
      pairs.set(f * s.columns + j, static_cast<double>(rng() % static_cast<uint64_t>(s.rows)));
      pairs.set((s.offsets + f) * s.columns + j, static_cast<double>(rng() % static_cast<uint64_t>(s.outputs)));
    }
  }
  return {HostTensor::Uniform(type, {s.rows, s.channels}, rng),
          HostTensor::Uniform(type, {s.filters, 1, s.offsets, 1, s.channels}, rng), pairs, counts,
          HostTensor::Full(index, {}, static_cast<double>(s.outputs))};
}

class IndiceConvRandom : public ::testing::TestWithParam<DType> {};

TEST_P(IndiceConvRandom, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of hundreds of products that cancel
  for (int round = 0; round < Rounds(12); ++round) {
    IndiceConv op;
    op.is_subm = rng() % 2;
    Sizes s{static_cast<int64_t>(rng() % 50),
            static_cast<int64_t>(rng() % 40),
            static_cast<int64_t>(rng() % 80),
            static_cast<int64_t>(rng() % 60),
            0,
            static_cast<int64_t>(1 + rng() % 9)};
    const int64_t max_outputs = op.is_subm ? s.rows : s.offsets * s.columns;
    s.outputs = max_outputs == 0
                    ? 0
                    : static_cast<int64_t>(rng() % static_cast<uint64_t>(std::min<int64_t>(max_outputs, 90) + 1));
    SCOPED_TRACE(Concat("round ", round, ": ", s.rows, " rows of ", s.channels, " channels, ", s.outputs,
                        " outputs of ", s.filters));
    ExpectMatchesReference(op, Inputs(op, s, GetParam(), rng() % 2 ? DType::kI32 : DType::kI64, rng), tolerance);
  }
}

// Channels in multiples of 8, which a GPU copies by pieces of 16 bytes, and several pairs of an output and an offset.
TEST_P(IndiceConvRandom, PiecesOfChannels) {
  std::mt19937 rng(5);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;
  for (const bool subm : {false, true}) {
    IndiceConv op;
    op.is_subm = subm;
    for (const Sizes& s : {Sizes{150, 16, 40, 150, 140, 35}, Sizes{40, 40, 72, 90, 9, 3}}) {
      ExpectMatchesReference(op, Inputs(op, s, GetParam(), DType::kI32, rng), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, IndiceConvRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(IndiceConv, ManyBlocksOfOutputs) {
  std::mt19937 rng(2);
  const IndiceConv op;
  const Sizes sizes{900, 20, 130, 700, 1100, 2};
  ExpectMatchesReference(op, Inputs(op, sizes, DType::kF32, DType::kI32, rng));
}

TEST(IndiceConv, SubmanifoldMirrorsCountsAndAddsTheCentre) {
  IndiceConv op;
  op.is_subm = true;
  std::vector<HostTensor> out;
  const HostTensor pairs = HostTensor::Of(DType::kI32, {2, 3, 2}, {0, -1, 5, 5, 1, -1, 1, -1, 5, 5, 0, -1});
  ASSERT_TRUE(testing::Run(op,
                           {HostTensor::Of(DType::kF32, {2, 1}, {1, 10}),
                            HostTensor::Of(DType::kF32, {1, 1, 1, 3, 1}, {2, 3, 5}), pairs,
                            HostTensor::Of(DType::kI32, {3}, {1, 0, 0}), HostTensor::Full(DType::kI32, {1}, 2)},
                           &out)
                  .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{3 + 50, 30 + 2}));
}

// Without outputs there must be no scratch proportional to the channels.
TEST(IndiceConv, NoOutputsOfManyChannels) {
  constexpr int64_t kChannels = int64_t{1} << 40;
  IndiceConv op;
  op.is_subm = true;
  std::vector<HostTensor> out;
  const Status status =
      testing::Run(op,
                   {HostTensor::Full(DType::kF32, {1, 3}, 0), HostTensor::Full(DType::kF32, {kChannels, 0, 0, 0, 3}, 0),
                    HostTensor::Full(DType::kI32, {2, 0, 0}, 0), HostTensor::Full(DType::kI32, {0}, 0),
                    HostTensor::Full(DType::kI32, {}, 0)},
                   &out);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(out[0].shape(), (Shape{0, kChannels}));
}

TEST(IndiceConv, SameAtAnyAlignment) {
  std::mt19937 rng(4);
  const IndiceConv op;
  ExpectSameAtAnyAlignment(op, Inputs(op, {300, 33, 35, 200, 400, 3}, DType::kF32, DType::kI32, rng));
}

TEST(IndiceConv, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  IndiceConv op;
  const std::vector<HostTensor> good = Inputs(op, {4, 3, 2, 5, 6, 3}, DType::kF32, DType::kI32, rng);
  const auto error = [&](size_t input, const HostTensor& value, const std::vector<std::string>& parts) {
    std::vector<HostTensor> inputs = good;
    inputs[input] = value;
    ExpectError(op, inputs, parts);
  };
  const HostTensor counts = HostTensor::Of(DType::kI32, {3}, {0, 6, 0});
  error(3, counts, {"'indice_num_per_loc': expected a number of pairs in [0, 5] for offset 1, got 6"});
  error(3, HostTensor::Of(DType::kI32, {3}, {-1, 0, 0}), {"for offset 0, got -1"});
  error(4, HostTensor::Full(DType::kI32, {}, 16), {"'num_act_out': expected a value in [0, 15], got 16"});
  error(4, HostTensor::Full(DType::kI32, {}, -1), {"'num_act_out': expected a value in [0, 15], got -1"});
  std::vector<HostTensor> inputs = good;
  inputs[2] = HostTensor::Full(DType::kI32, {2, 3, 5}, 4);
  inputs[3] = HostTensor::Of(DType::kI32, {3}, {0, 0, 2});
  ExpectError(
      op, inputs,
      {"'indice_pairs': expected an input in [0, 4) and an output in [0, 6) for pair 0 of offset 2, got (4, 4)"});
  op.is_subm = true;  // offset 2 has the count of offset 0; there are no more outputs than rows
  inputs[4] = HostTensor::Full(DType::kI32, {}, 4);
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(op, inputs, &out).ok());
  inputs[4] = HostTensor::Full(DType::kI32, {}, 5);
  ExpectError(op, inputs, {"'num_act_out': expected a value in [0, 4], got 5"});
}

}  // namespace
}  // namespace polyop::testing

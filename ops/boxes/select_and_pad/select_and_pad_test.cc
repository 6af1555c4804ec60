// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/select_and_pad/select_and_pad.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class SelectAndPadRandom : public ::testing::TestWithParam<DType> {};

TEST_P(SelectAndPadRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(60); ++round) {
    const int64_t batch = rng() % 4, rows = rng() % 5 ? rng() % 40 : 3000, channels = rng() % 20;
    HostTensor feat = HostTensor::Uniform(GetParam(), {batch, rows, channels}, rng);
    if (feat.size() > 0) feat.set(0, NAN);
    SelectAndPad op;
    op.rows = static_cast<int64_t>(rng() % 50);
    SCOPED_TRACE(Concat("round ", round, ": ", op.rows, " of ", rows, " rows"));
    ExpectMatchesReference(op,
                           {feat, HostTensor::Uniform(rng() % 2 ? DType::kI32 : DType::kI64, {rows}, rng, -1, 2),
                            HostTensor::Uniform(GetParam(), {channels}, rng)},
                           {0, 0});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SelectAndPadRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Selects the same rows of every batch entry; TensorRT's plugin is wrong for all but the first.
TEST(SelectAndPad, SelectedRowsThenPadding) {
  SelectAndPad op;
  op.rows = 3;
  const HostTensor feat = HostTensor::Of(DType::kF32, {2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  const HostTensor invalid = HostTensor::Of(DType::kF32, {1}, {9});
  const auto selected = [&](const std::vector<double>& flags) {
    std::vector<HostTensor> out;
    const Status status = testing::Run(op, {feat, HostTensor::Of(DType::kI32, {4}, flags), invalid}, &out);
    EXPECT_TRUE(status.ok()) << status.message();
    return out[0].ToDoubles();
  };
  EXPECT_EQ(selected({0, 1, 0, -5}), (std::vector<double>{2, 4, 9, 6, 8, 9}));
  EXPECT_EQ(selected({1, 1, 1, 1}), (std::vector<double>{1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(selected({0, 0, 0, 0}), (std::vector<double>{9, 9, 9, 9, 9, 9}));
}

TEST(SelectAndPad, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  SelectAndPad op;
  op.rows = 300;
  ExpectSameAtAnyAlignment(
      op, {HostTensor::Uniform(DType::kF32, {2, 700, 64}, rng), HostTensor::Uniform(DType::kI32, {700}, rng, 0, 2),
           HostTensor::Uniform(DType::kF32, {64}, rng)});
}

TEST(SelectAndPad, RejectsInvalidInputs) {
  const HostTensor feat = HostTensor::Full(DType::kF32, {2, 4, 3}, 1), flags = HostTensor::Full(DType::kI32, {4}, 1);
  const HostTensor invalid = HostTensor::Full(DType::kF32, {3}, 1);
  ExpectError(SelectAndPad{}, {feat, HostTensor::Full(DType::kI32, {5}, 1), invalid}, {"'flags'", "to be Q = 4"});
  ExpectError(SelectAndPad{}, {feat, flags, HostTensor::Full(DType::kF32, {2}, 1)}, {"'invalid'", "to be C = 3"});
  ExpectAttributeError(*FindOp("select_and_pad"), {{"P", AttrValue::Int(-1)}}, {"'P': expected", "got -1"});
  ExpectAttributeError(*FindOp("select_and_pad"), {}, {"'P'"});
}

}  // namespace
}  // namespace polyop::testing

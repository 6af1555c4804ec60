// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool/bev_pool_backward.h"

#include <cmath>

#include "ops/bev/bev_pool_test.h"
#include "testing/gradients.h"

namespace polyop::testing {
namespace {

constexpr int64_t kRows = 4, kColumns = 5, kCells = kRows * kColumns;

BevPoolBackward Backward() {
  BevPoolBackward op;
  op.out_height = kRows;
  op.out_width = kColumns;
  return op;
}

std::vector<HostTensor> Inputs(const BevScene& s, DType dtype, DType index, std::mt19937& rng) {
  std::vector<HostTensor> inputs = BevInputs(s, dtype, index, kCells, rng);
  inputs.insert(inputs.begin(), HostTensor::Uniform(dtype, {1, kRows, kColumns, s.channels}, rng));
  return inputs;
}

class BevPoolBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(BevPoolBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const BevScene& s :
       {BevScene{}, BevScene{.channels = 1}, BevScene{.channels = 97, .ranks = 300, .intervals = 70},
        BevScene{.images = 1, .depths = 1, .height = 1, .width = 1, .channels = 33}}) {
    for (const DType index : {DType::kI32, DType::kI64}) {
      std::vector<HostTensor> inputs = Inputs(s, GetParam(), index, rng);
      for (int64_t i = 0; i < inputs[1].size(); i += 3) inputs[1].set(i, 0);
      Tolerance tolerance = ToleranceFor(GetParam());
      tolerance.absolute *= 4;  // sums of many products
      ExpectMatchesReference(Backward(), inputs, tolerance);
      // Ranks whose depths belong to their pixels, as view transformers compute them.
      for (int64_t r = 0; r < inputs[3].size(); ++r) {
        const auto at = static_cast<int64_t>(inputs[3].at(r)), plane = s.height * s.width;
        inputs[4].set(r, static_cast<double>(at / (s.depths * plane) * plane + at % plane));
      }
      ExpectMatchesReference(Backward(), inputs, tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BevPoolBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(BevPoolBackward, OverlappingIntervalsInSeveralGroups) {
  std::mt19937 rng(2);
  std::vector<HostTensor> inputs =
      Inputs({.channels = 1, .ranks = 150000, .intervals = 20}, DType::kF32, DType::kI32, rng);
  for (int64_t j = 0; j < 20; ++j) {  // 3 million entries
    inputs[6].set(j, static_cast<double>(j));
    inputs[7].set(j, 150000 - 20.0);
    inputs[5].set(j, static_cast<double>(j));
  }
  ExpectMatchesReference(Backward(), inputs, {.relative = 1e-3, .absolute = 1});
}

TEST(BevPoolBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = Inputs({.ranks = 400, .intervals = 90}, DType::kF32, DType::kI32, rng);
  BevPool op;
  op.out_height = kRows;
  op.out_width = kColumns;
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(Backward(), inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(op, {inputs.begin() + 1, inputs.end()}, &output).ok());
  EXPECT_NEAR(InnerProduct(output[0], inputs[0]), InnerProduct(grads[0], inputs[1]), 1e-3);
  EXPECT_NEAR(InnerProduct(output[0], inputs[0]), InnerProduct(grads[1], inputs[2]), 1e-3);
}

TEST(BevPoolBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(4);
  const std::vector<HostTensor> inputs = Inputs({}, DType::kF16, DType::kI32, rng);
  ExpectOnlyRequestedGradients(Backward(), inputs, 2);
}

TEST(BevPoolBackward, KeepsNanWhereItBelongs) {
  std::vector<HostTensor> inputs = SmallBev({3, 3, 7, 3}, {0, 2, 3}, {2, 1, 1}), grads;
  inputs.insert(inputs.begin(), HostTensor::Full(DType::kF32, {1, kRows, kColumns, 1}, 1));
  inputs[0].set(3, NAN);  // the cell of rank 3, whose interval overwrites that of ranks 0 and 1
  ExpectMatchesReference(Backward(), inputs);
  ASSERT_TRUE(testing::Run(Backward(), inputs, &grads).ok());
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 3) << i;
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(std::isnan(grads[1].at(i)), i == 1) << i;
  EXPECT_EQ(grads[0].at(0), 0);
  EXPECT_EQ(grads[0].at(2), 10);
  EXPECT_EQ(grads[1].at(0), 3);
  inputs[1].set(3, 0);  // a weight of 0
  ASSERT_TRUE(testing::Run(Backward(), inputs, &grads).ok());
  EXPECT_EQ(grads[1].at(1), 0);
}

TEST(BevPoolBackward, Empty) {
  std::mt19937 rng(5);
  for (const BevScene& s : {BevScene{.channels = 0}, BevScene{.ranks = 0}, BevScene{.ranks = 0, .intervals = 0},
                            BevScene{.depths = 0, .ranks = 0}, BevScene{.images = 0, .ranks = 0}}) {
    std::vector<HostTensor> inputs =
        Inputs({.channels = s.channels, .ranks = s.ranks, .intervals = s.intervals}, DType::kF32, DType::kI64, rng);
    inputs[1] = HostTensor::Uniform(DType::kF32, {s.images, s.depths, s.height, s.width}, rng);
    inputs[2] = HostTensor::Uniform(DType::kF32, {s.images, s.height, s.width, s.channels}, rng);
    ExpectMatchesReference(Backward(), inputs);
  }
}

TEST(BevPoolBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  const std::vector<HostTensor> good = Inputs({}, DType::kF32, DType::kI32, rng);
  const auto expect_error = [&](size_t input, int64_t at, double value, const std::vector<std::string>& parts) {
    std::vector<HostTensor> inputs = good;
    inputs[input].set(at, value);
    ExpectError(Backward(), inputs, parts);
  };
  expect_error(3, 0, -1, {"'ranks_depth'[0]: expected a value in [0, 120), got -1"});
  expect_error(4, 0, 24, {"'ranks_feat'[0]: expected a value in [0, 24), got 24"});
  expect_error(5, 0, 20, {"'ranks_bev'[0]: expected a cell in [0, 20), got 20"});
  expect_error(7, 3, 1000, {"interval 3: expected it within the 60 ranks", "length 1000"});
}

}  // namespace
}  // namespace polyop::testing

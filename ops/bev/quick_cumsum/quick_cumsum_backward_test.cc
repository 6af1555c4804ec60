// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/quick_cumsum/quick_cumsum_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

constexpr int64_t kBatch = 2, kLayers = 2, kRows = 3, kColumns = 4;

QuickCumsumBackward Backward() {
  QuickCumsumBackward op;
  op.batch_size = kBatch;
  op.dimension = kLayers;
  op.height = kRows;
  op.width = kColumns;
  return op;
}

// Returns inputs with intervals of 0 to 6 points, consecutive or anywhere. Some belong to the same cell.
std::vector<HostTensor> Inputs(int64_t points, int64_t channels, int64_t intervals, bool overlap, DType dtype,
                               DType index, std::mt19937& rng) {
  HostTensor cells(index, {points, 4}), lengths(index, {intervals}), starts(index, {intervals});
  constexpr uint64_t kExtents[] = {kRows, kColumns, kLayers, kBatch};
  for (int64_t i = 0; i < cells.size(); ++i) cells.set(i, static_cast<double>(rng() % kExtents[i % 4]));
  int64_t at = 0;
  for (int64_t j = 0; j < intervals; ++j) {
    if (overlap) at = static_cast<int64_t>(rng() % static_cast<uint64_t>(points));
    const int64_t length = std::min<int64_t>(points - at, static_cast<int64_t>(rng() % 7));
    starts.set(j, static_cast<double>(at));
    lengths.set(j, static_cast<double>(length));
    at += length;
  }
  return {HostTensor::Uniform(dtype, {kBatch, kLayers, kRows, kColumns, channels}, rng),
          HostTensor::Uniform(dtype, {points, channels}, rng), cells, lengths, starts};
}

class QuickCumsumBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(QuickCumsumBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const int64_t channels : {1, 17, 80}) {
    for (const bool overlap : {false, true}) {
      for (const DType index : {DType::kI32, DType::kI64}) {
        ExpectMatchesReference(Backward(), Inputs(90, channels, 30, overlap, GetParam(), index, rng),
                               ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QuickCumsumBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(QuickCumsumBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  for (const bool overlap : {false, true}) {
    const std::vector<HostTensor> inputs = Inputs(200, 19, 60, overlap, DType::kF32, DType::kI32, rng);
    QuickCumsum op = Backward();
    std::vector<HostTensor> grads, output;
    ASSERT_TRUE(testing::Run(Backward(), inputs, &grads).ok());
    ASSERT_TRUE(testing::Run(op, {inputs.begin() + 1, inputs.end()}, &output).ok());
    double forward = 0, backward = 0;
    for (int64_t i = 0; i < output[0].size(); ++i) forward += output[0].at(i) * inputs[0].at(i);
    for (int64_t i = 0; i < grads[0].size(); ++i) backward += grads[0].at(i) * inputs[1].at(i);
    EXPECT_NEAR(forward, backward, 1e-3);
  }
}

TEST(QuickCumsumBackward, KeepsNanWhereItBelongs) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = Inputs(5, 1, 2, false, DType::kF32, DType::kI32, rng), grads;
  inputs[2] = HostTensor::Full(DType::kI32, {5, 4}, 0);
  inputs[2].set(4 * 3 + 1, 1);  // the last point of the second interval
  inputs[3] = HostTensor::Of(DType::kI32, {2}, {2, 2});
  inputs[4] = HostTensor::Of(DType::kI32, {2}, {0, 2});
  inputs[0].set(1, NAN);
  ExpectMatchesReference(Backward(), inputs);
  ASSERT_TRUE(testing::Run(Backward(), inputs, &grads).ok());
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 2 || i == 3) << i;
  EXPECT_EQ(grads[0].at(0), inputs[0].at(0));
  EXPECT_EQ(grads[0].at(4), 0);
}

TEST(QuickCumsumBackward, Empty) {
  std::mt19937 rng(4);
  ExpectMatchesReference(Backward(), Inputs(0, 3, 4, false, DType::kF32, DType::kI32, rng));
  ExpectMatchesReference(Backward(), Inputs(5, 0, 4, false, DType::kF32, DType::kI32, rng));
  ExpectMatchesReference(Backward(), Inputs(5, 3, 0, false, DType::kF32, DType::kI32, rng));
}

TEST(QuickCumsumBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  std::vector<HostTensor> inputs = Inputs(9, 3, 4, false, DType::kF32, DType::kI32, rng);
  inputs[3].set(1, 100);
  ExpectError(Backward(), inputs, {"interval 1: expected it within the 9 ranks", "length 100"});
  inputs[0] = HostTensor::Full(DType::kF32, {kBatch, kLayers, kRows, 9, 3}, 0);
  ExpectError(Backward(), inputs, {"'grad_bev'", "got 9"});
}

}  // namespace
}  // namespace polyop::testing

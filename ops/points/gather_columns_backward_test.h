// SPDX-License-Identifier: Apache-2.0
// Shared tests of the gradients of gathers of columns. G is the gradient's struct, whose `idx` is [B, picks...].
#pragma once

#include <cmath>
#include <vector>

#include "testing/testing.h"

namespace polyop::testing {

/// `picks` has the extents of `idx` after the batches.
struct ColumnSizes {
  int64_t batches, channels, points;
  std::vector<int64_t> picks;

  /// Returns `first` followed by the extents of the picks.
  Shape Picked(Shape first) const {
    for (const int64_t extent : picks) first.push_back(extent);
    return first;
  }
};

inline std::vector<HostTensor> ColumnInputs(const ColumnSizes& s, DType dtype, DType index, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, s.Picked({s.batches, s.channels}), rng),
          HostTensor::Uniform(dtype, {s.batches, s.channels, s.points}, rng),
          HostTensor::Uniform(index, s.Picked({s.batches}), rng, 0, static_cast<double>(s.points))};
}

template <class G>
void ExpectColumnsMatchReference(const std::vector<ColumnSizes>& all, DType dtype) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(dtype);
  tolerance.absolute *= 10;  // sums of many gradients
  for (const ColumnSizes& sizes : all) {
    for (const DType index : {DType::kI32, DType::kI64}) {
      ExpectMatchesReference(G{}, ColumnInputs(sizes, dtype, index, rng), tolerance);
    }
  }
}

/// Gathering is linear: <grad, gather(x)> = <backward(grad), x>.
template <class G>
void ExpectAdjointOfGather(const ColumnSizes& sizes) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = ColumnInputs(sizes, DType::kF32, DType::kI32, rng);
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(G{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(typename G::ForwardOperator{}, {inputs[1], inputs[2]}, &output).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < output[0].size(); ++i) left += output[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grads[0].size(); ++i) right += grads[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-3);
}

/// Sets batches, channels, picks, and picks and points to 0, one after the other.
template <class G>
void ExpectEmptyColumns(const ColumnSizes& four) {
  std::mt19937 rng(3);
  for (int which = 0; which < 4; ++which) {
    ColumnSizes s = four;
    if (which == 0) s.batches = 0;
    if (which == 1) s.channels = 0;
    if (which >= 2) s.picks[0] = 0;
    if (which == 3) s.points = 0;
    ExpectMatchesReference(G{}, ColumnInputs(s, DType::kF32, DType::kI64, rng));
  }
}

/// `sizes` is one batch of three channels, six points and four picks.
template <class G>
void ExpectNanStaysInItsColumn(const ColumnSizes& sizes) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = ColumnInputs(sizes, DType::kF32, DType::kI32, rng);
  inputs[2] = HostTensor::Of(DType::kI32, sizes.Picked({1}), {5, 2, 0, 2});
  inputs[0].set(4 + 1, NAN);  // channel 1, a copy of point 2
  ExpectMatchesReference(G{}, inputs);
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(G{}, inputs, &grads).ok());
  for (int64_t i = 0; i < grads[0].size(); ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 6 + 2) << i;
}

/// `sizes` is one batch of three channels and six points.
template <class G>
void ExpectColumnsRefuseBadInput(const ColumnSizes& sizes) {
  std::mt19937 rng(5);
  std::vector<HostTensor> inputs = ColumnInputs(sizes, DType::kF32, DType::kI32, rng);
  inputs[2].set(3, 6);
  ExpectError(G{}, inputs, {"'idx' at flat index 3: expected a column of 'features' in [0, 6), got 6"});
  inputs[1] = HostTensor::Full(DType::kF32, {1, 4, 6}, 0);
  ExpectError(G{}, inputs, {"'features'", "C = 3", "got 4"});
}

}  // namespace polyop::testing

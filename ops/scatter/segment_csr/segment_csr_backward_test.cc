// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter/segment_csr/segment_csr_backward.h"

#include <algorithm>
#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Reduce = SegmentCsr::Reduce;
constexpr Reduce kAll[] = {Reduce::kSum, Reduce::kMean, Reduce::kMul, Reduce::kDiv, Reduce::kMin, Reduce::kMax};

SegmentCsrBackward Backward(Reduce reduce) {
  SegmentCsrBackward op;
  op.reduce = reduce;
  return op;
}

std::vector<HostTensor> InputsOf(Reduce reduce, const HostTensor& src, const HostTensor& indptr, std::mt19937& rng) {
  SegmentCsr op;
  op.reduce = reduce;
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(op, {src, indptr}, &out).ok());
  return {HostTensor::Uniform(src.dtype(), out[0].shape(), rng), src, indptr, out[0]};
}

// Returns ascending boundaries; some rows before the first and after the last may belong to no segment.
HostTensor Boundaries(DType index, int64_t count, int64_t rows, std::mt19937& rng) {
  std::vector<double> ends;
  for (int64_t m = 0; m < count; ++m) ends.push_back(static_cast<double>(rng() % static_cast<uint64_t>(rows + 1)));
  std::sort(ends.begin(), ends.end());
  return HostTensor::Of(index, {count}, ends);
}

class SegmentCsrBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(SegmentCsrBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Reduce reduce : kAll) {
    const bool product = reduce == Reduce::kMul || reduce == Reduce::kDiv;
    for (const Shape& shape : {Shape{60, 3}, Shape{9, 1}, Shape{200, 97}, Shape{33, 64}}) {
      HostTensor src = HostTensor::Uniform(GetParam(), shape, rng, product ? 0.5 : -1, product ? 2 : 1);
      for (int64_t i = 0; i < src.size() && !product; ++i) src.set(i, std::round(src.at(i) * 4) / 4);  // equal rows
      for (int64_t i = 0; i < src.size() && reduce != Reduce::kDiv; i += 5) src.set(i, product || i % 2 ? 0 : NAN);
      const HostTensor indptr =
          Boundaries(rng() % 2 ? DType::kI32 : DType::kI64, 1 + static_cast<int64_t>(rng() % 30), shape[0], rng);
      ExpectMatchesReference(Backward(reduce), InputsOf(reduce, src, indptr, rng), ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SegmentCsrBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> Grads(Reduce reduce, const std::vector<double>& src, const std::vector<double>& grad) {
  std::mt19937 rng(2);
  std::vector<HostTensor> inputs =
      InputsOf(reduce, HostTensor::Of(DType::kF32, {6, 1}, src), HostTensor::Of(DType::kI32, {3}, {1, 4, 5}), rng);
  std::vector<HostTensor> out;
  inputs[0] = HostTensor::Of(DType::kF32, {2, 1}, grad);
  EXPECT_TRUE(testing::Run(Backward(reduce), inputs, &out).ok());
  return out[0].ToDoubles();
}

TEST(SegmentCsrBackward, FollowsTheReduction) {
  const std::vector<double> src = {9, 2, 4, 2, 8, 9}, grad = {3, 5};
  EXPECT_EQ(Grads(Reduce::kSum, src, grad), (std::vector<double>{0, 3, 3, 3, 5, 0}));
  EXPECT_EQ(Grads(Reduce::kMean, src, grad), (std::vector<double>{0, 1, 1, 1, 5, 0}));
  EXPECT_EQ(Grads(Reduce::kMul, src, grad), (std::vector<double>{0, 24, 12, 24, 5, 0}));
  EXPECT_EQ(Grads(Reduce::kDiv, src, {64, 64}), (std::vector<double>{0, -2, -1, -2, -1, 0}));
  EXPECT_EQ(Grads(Reduce::kMin, src, grad), (std::vector<double>{0, 3, 0, 0, 5, 0}));
  EXPECT_EQ(Grads(Reduce::kMax, src, grad), (std::vector<double>{0, 0, 3, 0, 5, 0}));
  EXPECT_EQ(Grads(Reduce::kMul, {9, 2, 0, 2, 0, 9}, grad), (std::vector<double>{0, 0, 12, 0, 5, 0}));
  EXPECT_EQ(Grads(Reduce::kMax, {9, NAN, 0, 2, NAN, 9}, grad), (std::vector<double>{0, 0, 0, 3, 0, 0}));
}

TEST(SegmentCsrBackward, KeepsNanWhereItBelongs) {
  for (const Reduce reduce : kAll) {
    const std::vector<double> got = Grads(reduce, {9, 2, 4, 3, 8, 9}, {1, NAN});
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(got[i]), i == 4) << i;
  }
}

TEST(SegmentCsrBackward, EmptyAndWithoutSegments) {
  std::mt19937 rng(3);
  for (const Reduce reduce : kAll) {
    for (const Shape& shape : {Shape{0, 4}, Shape{5, 0}, Shape{5, 4}}) {
      const HostTensor src = HostTensor::Full(DType::kF32, shape, 1);
      ExpectMatchesReference(Backward(reduce), InputsOf(reduce, src, HostTensor::Full(DType::kI32, {1}, 0), rng));
      ExpectMatchesReference(Backward(reduce), InputsOf(reduce, src, HostTensor::Full(DType::kI32, {4}, 0), rng));
    }
  }
}

TEST(SegmentCsrBackward, RejectsInvalidInputs) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = InputsOf(Reduce::kSum, HostTensor::Full(DType::kF32, {4, 2}, 1),
                                            HostTensor::Of(DType::kI32, {3}, {0, 2, 4}), rng);
  inputs[2].set(1, 5);
  ExpectError(Backward(Reduce::kSum), inputs, {"'indptr'[1]: expected a value in [0, 4]", "got 5"});
  inputs[0] = HostTensor::Full(DType::kF32, {3, 2}, 1);
  ExpectError(Backward(Reduce::kSum), inputs, {"'grad_out'", "got 3"});
}

}  // namespace
}  // namespace polyop::testing

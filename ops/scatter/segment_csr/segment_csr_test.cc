// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter/segment_csr/segment_csr.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Reduce = SegmentCsr::Reduce;
constexpr Reduce kAll[] = {Reduce::kSum, Reduce::kMean, Reduce::kMul, Reduce::kDiv, Reduce::kMin, Reduce::kMax};

HostTensor Indptr(DType dtype, const std::vector<double>& ends) {
  return HostTensor::Of(dtype, {static_cast<int64_t>(ends.size())}, ends);
}

class SegmentCsrRandom : public ::testing::TestWithParam<DType> {};

TEST_P(SegmentCsrRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(90); ++round) {
    const int64_t rows = rng() % 120, channels = rng() % 3 ? rng() % 70 : 128, segments = rng() % 30;
    std::vector<double> ends{static_cast<double>(rng() % 3)};
    if (ends[0] > static_cast<double>(rows)) ends[0] = 0;
    for (int64_t m = 0; m < segments; ++m) {
      ends.push_back(std::min(static_cast<double>(rows), ends.back() + static_cast<double>(rng() % 9)));
    }
    HostTensor src = HostTensor::Uniform(GetParam(), {rows, channels}, rng, 0.5, 1.5);
    for (int64_t i = 0; i < src.size() && round % 5 == 0; i += 1 + rng() % 9) src.set(i, rng() % 3 ? NAN : INFINITY);
    SegmentCsr op;
    op.reduce = kAll[round % 6];
    SCOPED_TRACE(Concat("round ", round, ": ", segments, " segments of ", rows, " rows"));
    ExpectMatchesReference(op, {src, Indptr(rng() % 2 ? DType::kI32 : DType::kI64, ends)}, ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SegmentCsrRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> Reduced(Reduce reduce, const std::vector<double>& rows, const std::vector<double>& ends) {
  SegmentCsr op;
  op.reduce = reduce;
  std::vector<HostTensor> out;
  const HostTensor src = HostTensor::Of(DType::kF32, {static_cast<int64_t>(rows.size()), 1}, rows);
  const Status status = testing::Run(op, {src, Indptr(DType::kI64, ends)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(SegmentCsr, EveryReductionWithAndWithoutRows) {
  const std::vector<double> rows = {100, 2, 4, 8, 100}, ends = {1, 4, 4};
  EXPECT_EQ(Reduced(Reduce::kSum, rows, ends), (std::vector<double>{14, 0}));
  EXPECT_EQ(Reduced(Reduce::kMean, rows, ends), (std::vector<double>{static_cast<double>(14.0f / 3), 0}));
  EXPECT_EQ(Reduced(Reduce::kMul, rows, ends), (std::vector<double>{64, 1}));
  EXPECT_EQ(Reduced(Reduce::kDiv, rows, ends), (std::vector<double>{1.0 / 64, 1}));
  EXPECT_EQ(Reduced(Reduce::kMin, rows, ends), (std::vector<double>{2, 0}));
  EXPECT_EQ(Reduced(Reduce::kMax, rows, ends), (std::vector<double>{8, 0}));
}

TEST(SegmentCsr, ExtremesIgnoreNan) {
  const std::vector<double> rows = {NAN, 2, NAN, -INFINITY, NAN, NAN}, ends = {0, 3, 4, 6};
  for (const Reduce reduce : {Reduce::kMin, Reduce::kMax}) {
    const std::vector<double> got = Reduced(reduce, rows, ends);
    EXPECT_EQ(got[0], 2);
    EXPECT_EQ(got[1], -INFINITY);
    EXPECT_TRUE(std::isnan(got[2]));
  }
}

TEST(SegmentCsr, NoSegments) { EXPECT_TRUE(Reduced(Reduce::kSum, {1, 2}, {1}).empty()); }

TEST(SegmentCsr, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  ExpectSameAtAnyAlignment(SegmentCsr{}, {HostTensor::Uniform(DType::kF32, {3000, 48}, rng),
                                          Indptr(DType::kI32, {0, 7, 8, 900, 2000, 3000})});
}

TEST(SegmentCsr, RejectsInvalidInputs) {
  const HostTensor src = HostTensor::Full(DType::kF32, {4, 2}, 1);
  ExpectError(SegmentCsr{}, {src, Indptr(DType::kI64, {0, 3, 2})},
              {"'indptr'[2]: expected a value in [3, 4]", "got 2"});
  ExpectError(SegmentCsr{}, {src, Indptr(DType::kI32, {0, 5})}, {"'indptr'[1]: expected a value in [0, 4]", "got 5"});
  ExpectError(SegmentCsr{}, {src, Indptr(DType::kI32, {-1, 3})}, {"'indptr'[0]: expected a value in [0, 4]", "got -1"});
  ExpectError(SegmentCsr{}, {src, Indptr(DType::kI32, {})}, {"'indptr': expected at least 1 element, got shape [0]"});
  ExpectAttributeError(*FindOp("segment_csr"), {{"reduce", AttrValue::String("median")}}, {"'reduce'", "median"});
}

}  // namespace
}  // namespace polyop::testing

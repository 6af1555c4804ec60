// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/cummax/cummax.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

constexpr double kInf = INFINITY;

void ExpectScan(CumMax::Mode mode, const std::vector<double>& input, const std::vector<double>& values,
                const std::vector<double>& indices) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const CumMax op{.dim = 0, .mode = mode};
    std::vector<HostTensor> outputs;
    const Shape shape{static_cast<int64_t>(input.size())};
    ASSERT_TRUE(Run(op, {HostTensor::Of(dtype, shape, input)}, &outputs).ok());
    ExpectNear(outputs[0], HostTensor::Of(dtype, shape, values), {0, 0}, "values");
    EXPECT_EQ(outputs[1].ToDoubles(), indices);
  }
}

// The results of PyTorch 2.
TEST(CumMax, TiesAndNanTakeTheLatestIndex) {
  using enum CumMax::Mode;
  ExpectScan(kMax, {1, 3, 2, 3, 0}, {1, 3, 3, 3, 3}, {0, 1, 1, 3, 3});
  ExpectScan(kMin, {3, 1, 2, 1, 5}, {3, 1, 1, 1, 1}, {0, 1, 1, 3, 3});
  ExpectScan(kMax, {1, NAN, 2, NAN, kInf}, {1, NAN, NAN, NAN, NAN}, {0, 1, 1, 3, 3});
  ExpectScan(kMin, {1, NAN, 2, NAN, -kInf}, {1, NAN, NAN, NAN, NAN}, {0, 1, 1, 3, 3});
  ExpectScan(kMax, {-kInf, -kInf, kInf, kInf}, {-kInf, -kInf, kInf, kInf}, {0, 1, 2, 3});
  ExpectScan(kMax, {0.0, -0.0, 0.0, -1}, {0, 0, 0, 0}, {0, 1, 2, 2});
  ExpectScan(kMin, {0.0, -0.0, 0.0, 1}, {0, 0, 0, 0}, {0, 1, 2, 2});
}

// The sign of a zero is that of the element the index points to.
TEST(CumMax, ValuesAreTheElementsAtTheIndices) {
  std::mt19937 rng(3);
  HostTensor input = HostTensor::Uniform(DType::kF32, {5, 67}, rng, -2, 2);
  for (int64_t i = 0; i < input.size(); i += 3) input.set(i, i % 2 == 0 ? 0.0 : -0.0);
  for (int64_t i = 1; i < input.size(); i += 3) input.set(i, -1);
  for (CumMax::Mode mode : {CumMax::Mode::kMax, CumMax::Mode::kMin}) {
    for (int64_t dim : {0, 1}) {
      std::vector<HostTensor> outputs;
      ASSERT_TRUE(polyop::testing::Run(CumMax{.dim = dim, .mode = mode}, {input}, &outputs).ok());
      for (int64_t i = 0; i < input.size(); ++i) {
        const int64_t index = static_cast<int64_t>(outputs[1].at(i));
        const double element = dim == 0 ? input.at(index * 67 + i % 67) : input.at(i / 67 * 67 + index);
        ASSERT_EQ(outputs[0].at(i), element);
        ASSERT_EQ(std::signbit(outputs[0].at(i)), std::signbit(element)) << "dim " << dim << ", element " << i;
      }
    }
  }
}

class CumMaxTypes : public ::testing::TestWithParam<DType> {};

TEST_P(CumMaxTypes, MatchesReference) {
  const Shape kShapes[] = {{},      {1},        {7},     {33},       {1000},        {3, 17},
                           {17, 3}, {4, 16, 5}, {5, 64}, {65, 1, 2}, {2, 3, 40, 5}, {2, 2, 3, 2, 9},
                           {0},     {3, 0, 2},  {2, 0},  {9, 130},   {2, 40, 1100}};
  std::mt19937 rng(1);
  for (const Shape& shape : kShapes) {
    for (int64_t dim = -std::max(shape.rank(), 1); dim < std::max(shape.rank(), 1); ++dim) {
      for (CumMax::Mode mode : {CumMax::Mode::kMax, CumMax::Mode::kMin}) {
        SCOPED_TRACE(Concat(ToString(shape), " along ", dim, mode == CumMax::Mode::kMin ? ", min" : ", max"));
        const CumMax op{.dim = dim, .mode = mode};
        ExpectMatchesReference(op, {HostTensor::Uniform(GetParam(), shape, rng, -90, 90)}, {0, 0});
      }
    }
  }
}

// Ties, NaN, infinities, ascending and descending rows.
TEST_P(CumMaxTypes, RandomRows) {
  std::mt19937 rng(2);
  const bool real = GetParam() != DType::kI32 && GetParam() != DType::kI64;
  for (int round = 0; round < Rounds(100); ++round) {
    const Shape shape{1 + static_cast<int64_t>(rng() % 9), 1 + static_cast<int64_t>(rng() % 80)};
    HostTensor input = HostTensor::Uniform(GetParam(), shape, rng, -3, 3);
    const int kind = static_cast<int>(rng() % 5);
    for (int64_t i = 0; i < input.size(); ++i) {
      if (kind == 1) input.set(i, static_cast<double>(i % 50));
      if (kind == 2) input.set(i, static_cast<double>(-(i % 50)));
      if (kind == 3) input.set(i, std::floor(input.at(i)));
      if (kind == 4 && real && rng() % 20 == 0) input.set(i, rng() % 2 ? NAN : rng() % 2 ? -NAN : -kInf);
    }
    const CumMax op{.dim = static_cast<int64_t>(rng() % 4) - 2, .mode = static_cast<CumMax::Mode>(rng() % 2)};
    SCOPED_TRACE(Concat("round ", round, ", kind ", kind, ", ", ToString(shape), " along ", op.dim));
    ExpectMatchesReference(op, {input}, {0, 0});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CumMaxTypes,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Large enough for streaming stores, with aligned and unaligned rows.
TEST(CumMax, LargeOutputs) {
  std::mt19937 rng(4);
  for (DType dtype : {DType::kF32, DType::kI64}) {
    for (const Shape& shape : {Shape{2, 400, 512}, Shape{2, 500, 511}}) {
      const HostTensor input = HostTensor::Uniform(dtype, shape, rng, -1000, 1000);
      for (int64_t dim : {0, 1, 2}) ExpectMatchesReference(CumMax{.dim = dim}, {input}, {0, 0});
    }
  }
}

TEST(CumMax, IntegersAreComparedExactly) {
  const double kBig = 9007199254740992.0;  // 2^53
  ExpectMatchesReference(CumMax{}, {HostTensor::Of(DType::kI64, {4}, {kBig, kBig - 1, -kBig, kBig})});
  ExpectMatchesReference(CumMax{.mode = CumMax::Mode::kMin},
                         {HostTensor::Of(DType::kI32, {4}, {2147483647.0, -2147483648.0, 0, -2147483648.0})});
}

TEST(CumMax, RejectsInvalidInputs) {
  const HostTensor input = HostTensor::Full(DType::kF32, {2, 3}, 1);
  ExpectError(CumMax{.dim = 2}, {input},
              {"attribute 'dim': expected a value in [-2, 2) for 'input' of shape [2, 3], got 2"});
  ExpectError(CumMax{.dim = -3}, {input}, {"attribute 'dim': expected a value in [-2, 2)", "got -3"});
  ExpectError(CumMax{.dim = 1}, {HostTensor::Full(DType::kF32, {}, 1)}, {"expected a value in [-1, 1)"});
  ExpectError(CumMax{.dim = 5}, {HostTensor::Full(DType::kF32, {0, 3}, 1)}, {"attribute 'dim'", "got 5"});
  ExpectError(CumMax{}, {HostTensor::Full(DType::kU8, {2}, 1)}, {"no kernel takes inputs (u8[2])"});
  ExpectError(CumMax{}, {input, input}, {"expected 1 input, got 2"});
}

TEST(CumMax, NodeNamesImplyTheMode) {
  const Op& op = *FindOp("cummax");
  Params params;
  ASSERT_TRUE(MakeParams(op, {{"dim", AttrValue::Int(-1)}}, &params, "mmcv::cummin").ok());
  EXPECT_EQ(static_cast<CumMax*>(params.get())->mode, CumMax::Mode::kMin);
  EXPECT_EQ(static_cast<CumMax*>(params.get())->dim, -1);
  ASSERT_TRUE(MakeParams(op, {{"dim", AttrValue::Int(1)}}, &params, "mmcv::cummax").ok());
  EXPECT_EQ(static_cast<CumMax*>(params.get())->mode, CumMax::Mode::kMax);
  ExpectAttributeError(op, {}, {"'dim' is missing"});
  ExpectAttributeError(op, {{"dim", AttrValue::String("x")}}, {"dim"});
  ExpectAttributeError(op, {{"dim", AttrValue::Int(0)}, {"mode", AttrValue::String("mean")}}, {"mode", "max", "min"});
}

// Rows and columns that are not multiples of the vector length, and streamed outputs.
TEST(CumMax, SameAtAnyAlignment) {
  std::mt19937 rng(5);
  for (int64_t dim : {1, 2}) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kI64}) {
      ExpectSameAtAnyAlignment(CumMax{.dim = dim}, {HostTensor::Uniform(dtype, {3, 340, 1100}, rng, -1e6, 1e6)});
    }
  }
}

}  // namespace
}  // namespace polyop::testing

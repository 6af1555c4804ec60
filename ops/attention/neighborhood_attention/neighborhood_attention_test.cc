// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/neighborhood_attention/neighborhood_attention.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

NeighborhoodAttention Op(std::initializer_list<int64_t> kernel, std::initializer_list<int64_t> dilation = {1},
                         std::initializer_list<int64_t> causal = {0}) {
  NeighborhoodAttention op;
  const auto set = [](List<int64_t, 3>& list, std::initializer_list<int64_t> values) {
    list.count = 0;
    for (const int64_t v : values) list.items[static_cast<size_t>(list.count++)] = v;
  };
  set(op.kernel_size, kernel);
  set(op.dilation, dilation);
  set(op.is_causal, causal);
  return op;
}

std::vector<HostTensor> Inputs(const Shape& shape, int64_t columns, DType dtype, std::mt19937& rng) {
  Shape values = shape;
  values[values.rank() - 1] = columns;
  return {HostTensor::Uniform(dtype, shape, rng), HostTensor::Uniform(dtype, shape, rng),
          HostTensor::Uniform(dtype, values, rng)};
}

class NeighborhoodAttentionTest : public ::testing::TestWithParam<DType> {};

TEST_P(NeighborhoodAttentionTest, MatchesReference) {
  std::mt19937 rng(1);
  const auto matches = [&](NeighborhoodAttention op, const Shape& shape, int64_t columns) {
    SCOPED_TRACE(ToString(shape));
    ExpectMatchesReference(op, Inputs(shape, columns, GetParam(), rng), ToleranceFor(GetParam()));
    op.scale = 1.5f;
    ExpectMatchesReference(op, Inputs(shape, columns, GetParam(), rng), ToleranceFor(GetParam()));
  };
  matches(Op({3}), {2, 9, 2, 8}, 8);
  matches(Op({4}, {2}), {1, 11, 3, 5}, 7);
  matches(Op({1}), {1, 1, 1, 1}, 1);
  matches(Op({5}, {3}, {1}), {1, 17, 2, 16}, 3);
  matches(Op({3}), {1, 5, 6, 2, 33}, 33);
  matches(Op({3, 5}, {2, 1}, {0, 1}), {2, 7, 9, 2, 4}, 20);
  matches(Op({2, 3, 3}, {1, 1, 2}, {1, 0, 0}), {1, 3, 4, 7, 2, 8}, 8);
  matches(Op({7}), {1, 8, 9, 1, 36}, 72);
  matches(Op({70}, {1}, {1}), {1, 80, 1, 3}, 50);
}

INSTANTIATE_TEST_SUITE_P(Types, NeighborhoodAttentionTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Equal products: the result is the mean of the window.
std::vector<double> Means(const NeighborhoodAttention& op, const std::vector<double>& values) {
  const Shape shape = {1, static_cast<int64_t>(values.size()), 1, 1};
  std::vector<HostTensor> out;
  const HostTensor zero = HostTensor::Full(DType::kF32, shape, 0);
  EXPECT_TRUE(testing::Run(op, {zero, zero, HostTensor::Of(DType::kF32, shape, values)}, &out).ok());
  return out[0].ToDoubles();
}

TEST(NeighborhoodAttention, WindowsStayInside) {
  EXPECT_EQ(Means(Op({3}), {0, 3, 6, 9, 12}), (std::vector<double>{3, 3, 6, 9, 9}));
  EXPECT_EQ(Means(Op({2}), {0, 2, 4, 6}), (std::vector<double>{1, 1, 3, 5}));
  EXPECT_EQ(Means(Op({2}, {2}), {0, 1, 2, 3, 8}), (std::vector<double>{1, 2, 1, 2, 5}));
  EXPECT_EQ(Means(Op({3}, {1}, {1}), {0, 3, 6, 9}), (std::vector<double>{0, 1.5, 3, 6}));
}

TEST(NeighborhoodAttention, NanAndInfinity) {
  std::mt19937 rng(2);
  for (size_t i = 0; i < 3; ++i) {
    for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      std::vector<HostTensor> inputs = Inputs({1, 9, 2, 4}, 4, DType::kF32, rng);
      inputs[i].set(37, value);
      ExpectMatchesReference(Op({3}), inputs);
    }
  }
}

TEST(NeighborhoodAttention, EmptyInputs) {
  std::mt19937 rng(3);
  for (const Shape& shape : {Shape{0, 4, 2, 3}, Shape{2, 4, 0, 3}, Shape{2, 4, 2, 0}}) {
    ExpectMatchesReference(Op({3}), Inputs(shape, 5, DType::kF32, rng));
  }
  ExpectMatchesReference(Op({3}), Inputs({2, 4, 2, 3}, 0, DType::kF32, rng));
}

TEST(NeighborhoodAttention, RejectsInvalidInputs) {
  std::mt19937 rng(4);
  ExpectError(Op({3}, {2}), Inputs({1, 5, 1, 2}, 2, DType::kF32, rng),
              {"'query': expected at least kernel_size * dilation = 6 positions in dimension 1, got 5"});
  ExpectError(Op({3, 3}), Inputs({1, 5, 1, 2}, 2, DType::kF32, rng),
              {"attribute 'kernel_size': expected 1 value or 1, got 2"});
  ExpectError(Op({3}), Inputs({1, 2, 3}, 2, DType::kF32, rng), {"'query': expected 1 to 3 axes", "[1, 2, 3]"});
  ExpectAttributeError(*FindOp("neighborhood_attention"), {}, {"'kernel_size'"});
  ExpectAttributeError(*FindOp("neighborhood_attention"), {{"kernel_size", AttrValue::Ints({0})}},
                       {"'kernel_size'", "got 0"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/causal_conv1d/causal_conv1d.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Activation = CausalConv1d::Activation;

std::vector<HostTensor> Inputs(const Shape& x, int64_t width, DType dtype, DType weights, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, x, rng), HostTensor::Uniform(weights, {x[1], width}, rng),
          HostTensor::Uniform(weights, {x[1]}, rng), HostTensor::Uniform(dtype, {x[0], x[1], width - 1}, rng)};
}

class CausalConv1dTest : public ::testing::TestWithParam<DType> {};

TEST_P(CausalConv1dTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const DType weights : {GetParam(), DType::kF32}) {
    for (const int64_t width : {1, 2, 3, 4, 7}) {
      for (const Shape& x : {Shape{2, 3, 17}, Shape{1, 5, 1}, Shape{1, 40, 3}, Shape{1, 2, 5000}}) {
        SCOPED_TRACE(Concat("width ", width, ", ", ToString(x)));
        for (const Activation activation : {Activation::kNone, Activation::kSilu}) {
          ExpectMatchesReference(CausalConv1d{.activation = activation}, Inputs(x, width, GetParam(), weights, rng),
                                 ToleranceFor(GetParam()));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CausalConv1dTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(CausalConv1d, OptionalInputs) {
  std::mt19937 rng(2);
  for (int absent = 1; absent < 4; ++absent) {
    std::vector<HostTensor> inputs = Inputs({2, 5, 9}, 4, DType::kF32, DType::kF32, rng);
    for (size_t i = 0; i < 2; ++i) {
      if ((absent >> i & 1) != 0) inputs[2 + i] = HostTensor::Absent();
    }
    ExpectMatchesReference(CausalConv1d{}, inputs);
  }
}

// Two parts, the second of which starts with the final state of the first, equal the whole.
TEST(CausalConv1d, ContinuesFromAState) {
  const auto row = [](const std::vector<double>& values) {
    return HostTensor::Of(DType::kF32, {1, 1, static_cast<int64_t>(values.size())}, values);
  };
  const HostTensor weight = HostTensor::Of(DType::kF32, {1, 3}, {1, 10, 100}), none = HostTensor::Absent();
  std::vector<HostTensor> all, first, second;
  ASSERT_TRUE(testing::Run(CausalConv1d{}, {row({1, 2, 3, 4}), weight}, &all).ok());
  EXPECT_EQ(all[0].ToDoubles(), (std::vector<double>{100, 210, 321, 432}));
  EXPECT_EQ(all[1].ToDoubles(), (std::vector<double>{3, 4}));
  ASSERT_TRUE(testing::Run(CausalConv1d{}, {row({1}), weight}, &first).ok());
  EXPECT_EQ(first[1].ToDoubles(), (std::vector<double>{0, 1}));
  ASSERT_TRUE(testing::Run(CausalConv1d{}, {row({2, 3, 4}), weight, none, first[1]}, &second).ok());
  EXPECT_EQ(second[0].ToDoubles(), (std::vector<double>{210, 321, 432}));
}

TEST(CausalConv1d, NanAndInfinity) {
  std::mt19937 rng(3);
  for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY), 1e4, -1e4}) {
    std::vector<HostTensor> inputs = Inputs({1, 3, 20}, 4, DType::kF32, DType::kF32, rng);
    inputs[0].set(7, value);
    ExpectMatchesReference(CausalConv1d{.activation = Activation::kSilu}, inputs);
  }
}

TEST(CausalConv1d, EmptyInputs) {
  std::mt19937 rng(4);
  for (const Shape& x : {Shape{0, 3, 4}, Shape{2, 0, 4}, Shape{2, 3, 0}}) {
    ExpectMatchesReference(CausalConv1d{}, Inputs(x, 3, DType::kF32, DType::kF32, rng));
  }
}

TEST(CausalConv1d, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(CausalConv1d{}, {f32({1, 3, 4}), f32({3, 0})}, {"'"});
  ExpectError(CausalConv1d{}, {f32({1, 3, 4}), f32({2, 2})}, {"'weight'", "dim = 3", "got 2"});
  ExpectError(CausalConv1d{}, {f32({1, 3, 4}), f32({3, 4}), f32({3}), f32({1, 3, 4})},
              {"'initial_state'", "width - 1 = 3", "got 4"});
  ExpectAttributeError(*FindOp("causal_conv1d"), {{"activation", AttrValue::String("relu")}}, {"'activation'", "relu"});
}

}  // namespace
}  // namespace polyop::testing

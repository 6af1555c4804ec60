// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/selective_scan/selective_scan.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batch, dim, length, groups, states;
};

// Returns the inputs of a stable system: A is negative and step sizes are positive.
std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, std::mt19937& rng) {
  const Shape rows = {s.batch, s.dim, s.length}, coefficients = {s.batch, s.groups, s.states, s.length};
  return {HostTensor::Uniform(dtype, rows, rng),
          HostTensor::Uniform(dtype, rows, rng, 0, 0.5),
          HostTensor::Uniform(DType::kF32, {s.dim, s.states}, rng, -4, 0),
          HostTensor::Uniform(dtype, coefficients, rng),
          HostTensor::Uniform(dtype, coefficients, rng),
          HostTensor::Uniform(DType::kF32, {s.dim}, rng),
          HostTensor::Uniform(dtype, rows, rng, -3, 3),
          HostTensor::Uniform(DType::kF32, {s.dim}, rng, 0, 0.5),
          HostTensor::Uniform(DType::kF32, {s.batch, s.dim, s.states}, rng)};
}

class SelectiveScanTest : public ::testing::TestWithParam<DType> {};

TEST_P(SelectiveScanTest, MatchesReference) {
  std::mt19937 rng(1);
  int number = 0;
  for (const Sizes& s : {Sizes{2, 5, 7, 1, 3}, Sizes{1, 34, 130, 2, 16}, Sizes{2, 12, 64, 12, 1},
                         Sizes{1, 16, 1, 1, 16}, Sizes{1, 3, 600, 1, 5}}) {
    SCOPED_TRACE(Concat(s.dim, " channels, ", s.length, " steps"));
    ExpectMatchesReference(SelectiveScan{.delta_softplus = ++number % 2 == 0}, Inputs(s, GetParam(), rng),
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SelectiveScanTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(SelectiveScan, OptionalInputs) {
  std::mt19937 rng(2);
  for (int absent = 1; absent < 16; ++absent) {
    std::vector<HostTensor> inputs = Inputs({2, 9, 20, 3, 4}, DType::kF32, rng);
    for (size_t i = 0; i < 4; ++i) {
      if ((absent >> i & 1) != 0) inputs[5 + i] = HostTensor::Absent();
    }
    ExpectMatchesReference(SelectiveScan{.delta_softplus = true}, inputs);
  }
}

// A constant input converges to the fixed point of h = a h + b.
TEST(SelectiveScan, ConvergesToTheFixedPoint) {
  const auto full = [](const Shape& shape, double value) { return HostTensor::Full(DType::kF32, shape, value); };
  std::vector<HostTensor> out;
  const Shape rows = {1, 1, 400};
  ASSERT_TRUE(
      testing::Run(
          SelectiveScan{},
          {full(rows, 2), full(rows, 0.25), full({1, 1}, -1), full({1, 1, 1, 400}, 3), full({1, 1, 1, 400}, 0.5)}, &out)
          .ok());
  const double fixed = 0.25 * 2 * 3 / (1 - std::exp(-0.25));
  EXPECT_NEAR(out[0].at(399), 0.5 * fixed, 1e-4);
  EXPECT_NEAR(out[1].at(0), fixed, 1e-4);
  EXPECT_NEAR(out[0].at(0), 0.5 * 0.25 * 2 * 3, 1e-6);
}

// Two scans, the second of which starts with the last state of the first, equal one.
TEST(SelectiveScan, ContinuesFromAState) {
  std::mt19937 rng(3);
  std::vector<HostTensor> inputs = Inputs({1, 6, 70, 1, 4}, DType::kF32, rng);
  const auto steps = [&](int64_t begin, int64_t end) {
    std::vector<HostTensor> part = inputs;
    for (const size_t i : {0, 1, 3, 4, 6}) {
      Shape shape = inputs[i].shape();
      const int64_t length = 70, count = end - begin;
      shape[shape.rank() - 1] = count;
      part[i] = HostTensor(DType::kF32, shape);
      for (int64_t e = 0; e < part[i].size(); ++e) part[i].set(e, inputs[i].at(e / count * length + begin + e % count));
    }
    return part;
  };
  std::vector<HostTensor> all, first, second;
  ASSERT_TRUE(testing::Run(SelectiveScan{}, inputs, &all).ok());
  ASSERT_TRUE(testing::Run(SelectiveScan{}, steps(0, 69), &first).ok());
  std::vector<HostTensor> rest = steps(69, 70);
  rest[8] = first[1];
  ASSERT_TRUE(testing::Run(SelectiveScan{}, rest, &second).ok());
  ExpectNear(second[1], all[1], {1e-6, 1e-6}, "last_state");
  for (int64_t c = 0; c < 6; ++c) EXPECT_NEAR(second[0].at(c), all[0].at(c * 70 + 69), 1e-5);
}

TEST(SelectiveScan, LargeStepsAndRates) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = Inputs({1, 20, 33, 1, 2}, DType::kF32, rng);
  inputs[1] = HostTensor::Uniform(DType::kF32, {1, 20, 33}, rng, -40, 60);
  inputs[2] = HostTensor::Uniform(DType::kF32, {20, 2}, rng, -30, 0);
  ExpectMatchesReference(SelectiveScan{.delta_softplus = true}, inputs, {1e-4, 1e-4});
}

TEST(SelectiveScan, NanAndInfinity) {
  std::mt19937 rng(5);
  for (size_t i = 0; i < 9; ++i) {
    std::vector<HostTensor> inputs = Inputs({2, 5, 9, 1, 3}, DType::kF32, rng);
    inputs[i].set(inputs[i].size() / 2, NAN);
    ExpectMatchesReference(SelectiveScan{.delta_softplus = i % 2 == 0}, inputs);
  }
}

TEST(SelectiveScan, EmptyInputs) {
  std::mt19937 rng(6);
  for (const Sizes& s :
       {Sizes{0, 3, 4, 1, 2}, Sizes{2, 0, 4, 0, 2}, Sizes{2, 0, 4, 1, 2}, Sizes{2, 3, 0, 1, 2}, Sizes{2, 3, 4, 1, 0}}) {
    ExpectMatchesReference(SelectiveScan{}, Inputs(s, DType::kF32, rng));
  }
}

TEST(SelectiveScan, RejectsInvalidInputs) {
  std::mt19937 rng(7);
  ExpectError(SelectiveScan{}, Inputs({1, 6, 4, 4, 2}, DType::kF32, rng),
              {"'B': expected a number of groups that divides the 6 channels of 'u', got 4"});
  ExpectError(SelectiveScan{}, Inputs({1, 6, 4, 0, 2}, DType::kF32, rng), {"'B'", "got 0"});
  std::vector<HostTensor> inputs = Inputs({1, 6, 4, 2, 2}, DType::kF32, rng);
  inputs[4] = HostTensor::Full(DType::kF32, {1, 2, 3, 4}, 0);
  ExpectError(SelectiveScan{}, inputs, {"'C'", "states = 2", "got 3"});
}

}  // namespace
}  // namespace polyop::testing

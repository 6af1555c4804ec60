// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/selective_scan/selective_scan_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batch, dim, length, groups, states;
};

std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, std::mt19937& rng) {
  const Shape rows = {s.batch, s.dim, s.length}, coefficients = {s.batch, s.groups, s.states, s.length};
  return {HostTensor::Uniform(dtype, rows, rng),
          HostTensor::Uniform(DType::kF32, {s.batch, s.dim, s.states}, rng),
          HostTensor::Uniform(dtype, rows, rng),
          HostTensor::Uniform(dtype, rows, rng, 0, 0.5),
          HostTensor::Uniform(DType::kF32, {s.dim, s.states}, rng, -4, 0),
          HostTensor::Uniform(dtype, coefficients, rng),
          HostTensor::Uniform(dtype, coefficients, rng),
          HostTensor::Uniform(DType::kF32, {s.dim}, rng),
          HostTensor::Uniform(dtype, rows, rng, -3, 3),
          HostTensor::Uniform(DType::kF32, {s.dim}, rng, 0, 0.5),
          HostTensor::Uniform(DType::kF32, {s.batch, s.dim, s.states}, rng)};
}

// Sums of many products.
Tolerance ToleranceOfSums(DType dtype) {
  Tolerance tolerance = ToleranceFor(dtype);
  tolerance.absolute *= 20;
  return tolerance;
}

class SelectiveScanBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(SelectiveScanBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  int number = 0;
  for (const Sizes& s : {Sizes{2, 5, 7, 1, 3}, Sizes{1, 34, 130, 2, 16}, Sizes{2, 12, 64, 12, 1},
                         Sizes{1, 48, 1, 1, 16}, Sizes{1, 3, 200, 1, 5}}) {
    SCOPED_TRACE(Concat(s.dim, " channels, ", s.length, " steps"));
    SelectiveScanBackward op;
    op.delta_softplus = ++number % 2 == 0;
    ExpectMatchesReference(op, Inputs(s, GetParam(), rng), ToleranceOfSums(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SelectiveScanBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(SelectiveScanBackward, OptionalInputs) {
  std::mt19937 rng(2);
  for (int absent = 1; absent < 16; ++absent) {
    std::vector<HostTensor> inputs = Inputs({2, 9, 20, 3, 4}, DType::kF32, rng);
    for (size_t i = 0; i < 4; ++i) {
      if ((absent >> i & 1) != 0) inputs[7 + i] = HostTensor::Absent();
    }
    SelectiveScanBackward op;
    op.delta_softplus = true;
    ExpectMatchesReference(op, inputs, {1e-5, 1e-4});
  }
}

TEST(SelectiveScanBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(3);
  ExpectOnlyRequestedGradients(SelectiveScanBackward{}, Inputs({2, 9, 20, 3, 4}, DType::kF32, rng), 9);
}

// Without a gate, the output is linear in u and the initial state, and in C.
TEST(SelectiveScanBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = Inputs({2, 20, 90, 2, 8}, DType::kF32, rng);
  inputs[8] = HostTensor::Absent();
  std::vector<HostTensor> grads, out;
  ASSERT_TRUE(testing::Run(SelectiveScanBackward{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(SelectiveScan{}, {inputs.begin() + 2, inputs.end()}, &out).ok());
  const double product = InnerProduct(out[0], inputs[0]) + InnerProduct(out[1], inputs[1]);
  EXPECT_NEAR(product, InnerProduct(grads[0], inputs[2]) + InnerProduct(grads[8], inputs[10]), 2e-3);
}

TEST(SelectiveScanBackward, NanAndInfinity) {
  std::mt19937 rng(5);
  for (size_t i = 0; i < 11; ++i) {
    std::vector<HostTensor> inputs = Inputs({2, 5, 9, 1, 3}, DType::kF32, rng);
    inputs[i].set(inputs[i].size() / 2, NAN);
    ExpectMatchesReference(SelectiveScanBackward{}, inputs, {1e-5, 1e-4});
  }
}

TEST(SelectiveScanBackward, EmptyInputs) {
  std::mt19937 rng(6);
  for (const Sizes& s :
       {Sizes{0, 3, 4, 1, 2}, Sizes{2, 0, 4, 0, 2}, Sizes{2, 0, 4, 1, 2}, Sizes{2, 3, 0, 1, 2}, Sizes{2, 3, 4, 1, 0}}) {
    ExpectMatchesReference(SelectiveScanBackward{}, Inputs(s, DType::kF32, rng));
  }
}

TEST(SelectiveScanBackward, RejectsInvalidInputs) {
  std::mt19937 rng(7);
  ExpectError(SelectiveScanBackward{}, Inputs({1, 6, 4, 4, 2}, DType::kF32, rng),
              {"'B': expected a number of groups that divides the 6 channels of 'u', got 4"});
  std::vector<HostTensor> inputs = Inputs({1, 6, 4, 2, 2}, DType::kF32, rng);
  inputs[0] = HostTensor::Full(DType::kF32, {1, 6, 3}, 0);
  EXPECT_FALSE(testing::Run(SelectiveScanBackward{}, inputs, &inputs).ok());
}

}  // namespace
}  // namespace polyop::testing

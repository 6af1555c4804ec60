// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/implicit_gemm/implicit_gemm_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t rows, channels, filters, outputs;
  Shape kernel;
};

ImplicitGemmBackward Backward(SparseActivation activation) {
  ImplicitGemmBackward op;
  op.act_type = activation;
  op.act_alpha = 0.125f;
  return op;
}

// Returns the gradient's inputs. Every third pair is missing; a row may contribute to an output several times.
std::vector<HostTensor> Inputs(const ImplicitGemm& op, const Sizes& s, DType type, DType index, std::mt19937& rng) {
  HostTensor pairs(index, {s.kernel[0] * s.kernel[1] * s.kernel[2], s.outputs});
  for (int64_t i = 0; i < pairs.size(); ++i) {
    const bool none = s.rows == 0 || rng() % 3 == 0;
    pairs.set(i, none ? -1.0 - rng() % 2 : static_cast<double>(rng() % static_cast<uint64_t>(s.rows)));
  }
  const std::vector<HostTensor> inputs = {
      HostTensor::Uniform(type, {s.rows, s.channels}, rng),
      HostTensor::Uniform(type, {s.filters, s.kernel[0], s.kernel[1], s.kernel[2], s.channels}, rng),
      pairs,
      HostTensor::Full(index, {s.outputs, 1}, 77),
      HostTensor::Full(index, {s.outputs}, -5),
      rng() % 2 ? HostTensor::Uniform(type, {s.filters}, rng) : HostTensor::Absent()};
  std::vector<HostTensor> out, result = {HostTensor::Uniform(type, {s.outputs, s.filters}, rng)};
  EXPECT_TRUE(testing::Run(op, inputs, &out).ok());
  result.insert(result.end(), inputs.begin(), inputs.end());
  result.push_back(out[0]);
  return result;
}

class ImplicitGemmBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(ImplicitGemmBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of many products
  for (int round = 0; round < Rounds(12); ++round) {
    const Sizes sizes{static_cast<int64_t>(rng() % 50), static_cast<int64_t>(rng() % 40),
                      static_cast<int64_t>(rng() % 80), static_cast<int64_t>(rng() % 60),
                      Shape{static_cast<int64_t>(1 + rng() % 2), static_cast<int64_t>(1 + rng() % 3), 1}};
    const ImplicitGemmBackward op = Backward(static_cast<SparseActivation>(round % 4));
    SCOPED_TRACE(Concat("round ", round, ": ", sizes.rows, " rows of ", sizes.channels, " channels, ", sizes.outputs,
                        " outputs of ", sizes.filters));
    ExpectMatchesReference(op, Inputs(op, sizes, GetParam(), rng() % 2 ? DType::kI32 : DType::kI64, rng), tolerance);
  }
}

TEST_P(ImplicitGemmBackwardTest, ManyBlocksAndDeepChannels) {
  std::mt19937 rng(2);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 30;  // sums of a thousand products
  const ImplicitGemmBackward op;
  for (const Sizes& sizes : {Sizes{1100, 7, 140, 1300, {1, 1, 2}}, Sizes{1100, 140, 3, 1300, {1, 1, 1}}}) {
    ExpectMatchesReference(op, Inputs(op, sizes, GetParam(), DType::kI32, rng), tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ImplicitGemmBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(ImplicitGemmBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(3);
  const ImplicitGemm forward;
  std::vector<HostTensor> inputs = Inputs(forward, {300, 33, 20, 250, {3, 1, 3}}, DType::kF32, DType::kI64, rng);
  inputs[6] = HostTensor::Absent();
  std::vector<HostTensor> grads, output;
  ASSERT_TRUE(testing::Run(ImplicitGemmBackward{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(forward, {inputs.begin() + 1, inputs.begin() + 7}, &output).ok());
  const double expected = InnerProduct(output[0], inputs[0]);
  EXPECT_NEAR(expected, InnerProduct(grads[0], inputs[1]), 1e-2);
  EXPECT_NEAR(expected, InnerProduct(grads[1], inputs[2]), 1e-2);
}

TEST(ImplicitGemmBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(4);
  const ImplicitGemm forward;
  const std::vector<HostTensor> inputs = Inputs(forward, {30, 5, 7, 20, {1, 2, 1}}, DType::kF16, DType::kI32, rng);
  ExpectOnlyRequestedGradients(ImplicitGemmBackward{}, inputs, 3);
}

TEST(ImplicitGemmBackward, KeepsNanWhereItBelongs) {
  // Output 0 has rows 0 and 1 as inputs, output 1 has row 2 at the first position.
  const std::vector<HostTensor> inputs = {HostTensor::Of(DType::kF32, {2, 1}, {1, NAN}),
                                          HostTensor::Of(DType::kF32, {3, 1}, {1, 2, 4}),
                                          HostTensor::Of(DType::kF32, {1, 1, 1, 2, 1}, {2, -3}),
                                          HostTensor::Of(DType::kI32, {2, 2}, {0, 2, 1, -7}),
                                          HostTensor::Full(DType::kI32, {2, 1}, 0),
                                          HostTensor::Full(DType::kI32, {2}, 0),
                                          HostTensor::Absent(),
                                          HostTensor::Full(DType::kF32, {2, 1}, 1)};
  std::vector<HostTensor> grads;
  ASSERT_TRUE(testing::Run(ImplicitGemmBackward{}, inputs, &grads).ok());
  EXPECT_EQ(grads[0].at(0), 2);
  EXPECT_EQ(grads[0].at(1), -3);
  EXPECT_TRUE(std::isnan(grads[0].at(2)));
  EXPECT_TRUE(std::isnan(grads[1].at(0)));
  EXPECT_EQ(grads[1].at(1), 2);
}

TEST(ImplicitGemmBackward, Empty) {
  std::mt19937 rng(5);
  const ImplicitGemmBackward op;
  for (const Sizes& s : {Sizes{0, 3, 4, 5, {1, 2, 1}}, Sizes{4, 0, 4, 5, {1, 2, 1}}, Sizes{4, 3, 0, 5, {1, 2, 1}},
                         Sizes{4, 3, 4, 0, {1, 2, 1}}, Sizes{4, 3, 4, 5, {1, 0, 1}}}) {
    ExpectMatchesReference(op, Inputs(op, s, DType::kF32, DType::kI32, rng));
  }
}

TEST(ImplicitGemmBackward, RejectsInvalidInputs) {
  std::mt19937 rng(6);
  ImplicitGemmBackward op;
  std::vector<HostTensor> inputs = Inputs(op, {4, 3, 2, 5, {1, 3, 1}}, DType::kF32, DType::kI64, rng);
  inputs[3].set(7, 4);
  ExpectError(op, inputs,
              {"'pair_fwd' at flat index 7: expected a row of 'features' in [0, 4) or a negative number, got 4"});
  op.act_type = SparseActivation::kLeakyRelu;
  op.act_alpha = -0.5f;
  EXPECT_NE(op.Check().message().find("'act_alpha': expected at least 0 for a gradient"), std::string::npos);
}

}  // namespace
}  // namespace polyop::testing

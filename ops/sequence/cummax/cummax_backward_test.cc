// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/cummax/cummax_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

CumMaxBackward Backward(int64_t dim, CumMax::Mode mode) {
  CumMaxBackward op;
  op.dim = dim;
  op.mode = mode;
  return op;
}

// Returns a random gradient and input, and the indices of the forward pass.
std::vector<HostTensor> Inputs(const CumMaxBackward& op, DType dtype, const Shape& shape, std::mt19937& rng) {
  const HostTensor input = HostTensor::Uniform(dtype, shape, rng);
  std::vector<HostTensor> outputs;
  EXPECT_TRUE(testing::Run(static_cast<const CumMax&>(op), {input}, &outputs).ok());
  return {HostTensor::Uniform(dtype, shape, rng), input, outputs[1]};
}

class CumMaxBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(CumMaxBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;  // sums of many gradients
  for (CumMax::Mode mode : {CumMax::Mode::kMax, CumMax::Mode::kMin}) {
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 1}, Shape{5, 40}, Shape{2, 9, 17}, Shape{2, 3, 30, 33}}) {
      for (int64_t dim = 0; dim < std::max(shape.rank(), 1); ++dim) {
        const CumMaxBackward op = Backward(dim % 2 == 0 ? dim : dim - shape.rank(), mode);
        std::vector<HostTensor> inputs = Inputs(op, GetParam(), shape, rng);
        ExpectMatchesReference(op, inputs, tolerance);
        // Any indices are valid, even if no maximum has them.
        const double length = shape.rank() == 0 ? 1 : static_cast<double>(shape[static_cast<int>(dim)]);
        inputs[2] = HostTensor::Uniform(DType::kI64, shape, rng, 0, length);
        ExpectMatchesReference(op, inputs, tolerance);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CumMaxBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(CumMaxBackward, GivesTheGradientToTheExtremum) {
  const HostTensor grad = HostTensor::Of(DType::kF32, {5}, {1, 2, 4, 8, 16});
  const HostTensor input = HostTensor::Of(DType::kF32, {5}, {0, 3, 3, 1, 5});
  std::vector<HostTensor> outputs, grads;
  ASSERT_TRUE(testing::Run(CumMax{}, {input}, &outputs).ok());
  ASSERT_TRUE(testing::Run(CumMaxBackward{}, {grad, input, outputs[1]}, &grads).ok());
  EXPECT_EQ(grads[0].ToDoubles(), (std::vector<double>{1, 2, 12, 0, 16}));
}

TEST(CumMaxBackward, KeepsNanWhereItBelongs) {
  const HostTensor grad = HostTensor::Of(DType::kF32, {2, 3}, {1, NAN, 1, 1, 1, 1});
  const HostTensor indices = HostTensor::Of(DType::kI64, {2, 3}, {0, 0, 2, 0, 1, 1});
  std::vector<HostTensor> grads;
  ASSERT_TRUE(
      testing::Run(Backward(1, CumMax::Mode::kMax), {grad, HostTensor::Full(DType::kF32, {2, 3}, 0), indices}, &grads)
          .ok());
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(grads[0].at(i)), i == 0) << i;
}

TEST(CumMaxBackward, EmptyAndInvalidInputs) {
  std::mt19937 rng(2);
  for (const Shape& shape : {Shape{0}, Shape{2, 0, 3}, Shape{0, 4}}) {
    const CumMaxBackward op = Backward(0, CumMax::Mode::kMax);
    ExpectMatchesReference(op, Inputs(op, DType::kF32, shape, rng));
  }
  const std::vector<HostTensor> good = Inputs(Backward(1, CumMax::Mode::kMax), DType::kF32, {2, 3}, rng);
  ExpectError(Backward(2, CumMax::Mode::kMax), good,
              {"attribute 'dim': expected a value in [-2, 2) for 'input' of shape [2, 3], got 2"});
  std::vector<HostTensor> wrong = good;
  wrong[2].set(4, 3);
  ExpectError(Backward(1, CumMax::Mode::kMax), wrong,
              {"'indices' at flat index 4: expected an element of the dimension in [0, 3), got 3"});
  ExpectError(Backward(1, CumMax::Mode::kMax), {good[0], HostTensor::Full(DType::kF32, {2, 4}, 0), good[2]},
              {"'input'"});
}

}  // namespace
}  // namespace polyop::testing

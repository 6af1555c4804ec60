// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/masked_conv2d/masked_conv2d.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(const MaskedConv2d& op, DType dtype, const Shape& features, const Shape& weight,
                               std::mt19937& rng) {
  const int64_t rows = features[2] + 2 * op.padding[0] - weight[2] + 1,
                columns = features[3] + 2 * op.padding[1] - weight[3] + 1;
  return {HostTensor::Uniform(dtype, features, rng), HostTensor::Uniform(dtype, {1, rows, columns}, rng),
          HostTensor::Uniform(dtype, weight, rng), HostTensor::Uniform(dtype, {weight[0]}, rng)};
}

class MaskedConv2dTest : public ::testing::TestWithParam<DType> {};

TEST_P(MaskedConv2dTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 20;  // sums of up to 400 products
  for (const Shape& weight : {Shape{5, 3, 3, 3}, Shape{70, 16, 5, 5}, Shape{17, 8, 1, 1}, Shape{3, 4, 2, 3}}) {
    for (const auto& padding : {std::array<int64_t, 2>{0, 0}, {2, 3}}) {
      const MaskedConv2d op{{1, 1}, padding};
      std::vector<HostTensor> inputs = Inputs(op, GetParam(), {1, weight[1], 9, 13}, weight, rng);
      ExpectMatchesReference(op, inputs, tolerance);
      inputs[1] = HostTensor::Uniform(DType::kI32, inputs[1].shape(), rng, 0, 2).Cast(DType::kBool);
      inputs.pop_back();
      ExpectMatchesReference(op, inputs, tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MaskedConv2dTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MaskedConv2d, ZeroWithoutBiasWhereTheMaskIsNotPositive) {
  const HostTensor ones = HostTensor::Full(DType::kF32, {1, 2, 1, 5}, 1);
  const HostTensor mask = HostTensor::Of(DType::kF32, {1, 1, 5}, {1, 0, -1, NAN, 1e-30});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(
                  MaskedConv2d{},
                  {ones, mask, HostTensor::Full(DType::kF32, {1, 2, 1, 1}, 3), HostTensor::Full(DType::kF32, {1}, 0.5)},
                  &out)
                  .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{6.5, 0, 0, 0, 6.5}));
}

TEST(MaskedConv2d, EmptyInputsAndMasks) {
  std::mt19937 rng(2);
  const MaskedConv2d op{{1, 1}, {1, 1}};
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 6, 6}, {4, 3, 3, 3}, rng);
  inputs[1] = HostTensor::Full(DType::kF32, {1, 6, 6}, 0);
  ExpectMatchesReference(op, inputs);
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 0, 6, 6}, {4, 0, 3, 3}, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 0, 2}, {4, 3, 1, 1}, rng));
  ExpectMatchesReference(op, Inputs(op, DType::kF32, {1, 3, 6, 6}, {0, 3, 3, 3}, rng));
}

TEST(MaskedConv2d, RejectsInvalidInputs) {
  std::mt19937 rng(3);
  const MaskedConv2d op{{1, 1}, {1, 1}};
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 3, 6, 6}, {4, 3, 3, 3}, rng);
  inputs[1] = HostTensor::Full(DType::kF32, {1, 4, 6}, 1);  // the shape without padding
  ExpectError(op, inputs, {"'mask'", "expected dimension 1", "got 4", "= 6"});
  inputs = Inputs(op, DType::kF32, {2, 3, 6, 6}, {4, 3, 3, 3}, rng);
  ExpectError(op, inputs, {"'features'", "expected dimension 0 to be 1, got 2"});
  ExpectAttributeError(*FindOp("masked_conv2d"), {{"stride", AttrValue::Int(2)}}, {"'stride': expected", "got 2"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter_backward.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Random gradients, filters and indices; some positions have several sources, and some none.
std::vector<HostTensor> Inputs(DType type, DType index, int64_t filters, int64_t planes, const Shape& indices,
                               std::mt19937& rng) {
  const int64_t entries = indices[0] * indices[1] * indices[2];
  return {HostTensor::Uniform(type, {filters * indices[3], planes * indices[0], indices[1], indices[2]}, rng),
          HostTensor::Uniform(type, {filters, planes, indices[0], indices[1], indices[2]}, rng),
          HostTensor::Uniform(index, indices, rng, 1, static_cast<double>(entries) + 1)};
}

class ActiveRotatedFilterBackwardTest : public ::testing::TestWithParam<std::tuple<DType, DType>> {};

TEST_P(ActiveRotatedFilterBackwardTest, MatchesReference) {
  const auto [type, index] = GetParam();
  std::mt19937 rng(1);
  for (const Shape& indices : {Shape{8, 3, 3, 8}, Shape{1, 3, 3, 4}, Shape{2, 1, 5, 1}, Shape{1, 1, 1, 3}}) {
    for (const auto& [filters, planes] : {std::pair{5, 7}, std::pair{1, 1}, std::pair{18, 3}, std::pair{2, 37}}) {
      SCOPED_TRACE(Concat(ToString(indices), ", ", filters, " x ", planes));
      ExpectMatchesReference(ActiveRotatedFilterBackward{}, Inputs(type, index, filters, planes, indices, rng),
                             ToleranceFor(type));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ActiveRotatedFilterBackwardTest,
                         ::testing::Combine(::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                                            ::testing::Values(DType::kI32, DType::kI64)),
                         [](const auto& test) {
                           return Concat(NameOf(std::get<0>(test.param)), "_", NameOf(std::get<1>(test.param)));
                         });

TEST(ActiveRotatedFilterBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = Inputs(DType::kF32, DType::kI32, 9, 5, {4, 3, 3, 8}, rng);
  std::vector<HostTensor> grad, output;
  ASSERT_TRUE(testing::Run(ActiveRotatedFilterBackward{}, inputs, &grad).ok());
  ASSERT_TRUE(testing::Run(ActiveRotatedFilter{}, {inputs[1], inputs[2]}, &output).ok());
  double left = 0, right = 0;
  for (int64_t i = 0; i < output[0].size(); ++i) left += output[0].at(i) * inputs[0].at(i);
  for (int64_t i = 0; i < grad[0].size(); ++i) right += grad[0].at(i) * inputs[1].at(i);
  EXPECT_NEAR(left, right, 1e-3);
}

// Entries 1, 2 and 3 are copied to positions 3, 1, 2 by the first rotation and to 2, 1, 2 by the second, which drops
// entry 1.
TEST(ActiveRotatedFilterBackward, KnownIndices) {
  const HostTensor grad = HostTensor::Of(DType::kF32, {2, 1, 1, 3}, {10, 20, 30, 1, NAN, INFINITY});
  const HostTensor filter = HostTensor::Full(DType::kF32, {1, 1, 1, 1, 3}, 0);
  const HostTensor indices = HostTensor::Of(DType::kI32, {1, 1, 3, 2}, {3, 2, 1, 1, 2, 2});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(ActiveRotatedFilterBackward{}, {grad, filter, indices}, &out).ok());
  EXPECT_EQ(out[0].at(0), 30);
  EXPECT_EQ(out[0].at(1), 11);
  EXPECT_TRUE(std::isnan(out[0].at(2)));
}

TEST(ActiveRotatedFilterBackward, EmptyAndInvalidInputs) {
  std::mt19937 rng(3);
  const ActiveRotatedFilterBackward op;
  ExpectMatchesReference(op, Inputs(DType::kF32, DType::kI64, 0, 3, {1, 3, 3, 2}, rng));
  ExpectMatchesReference(op, Inputs(DType::kF32, DType::kI64, 2, 3, {1, 3, 3, 0}, rng));
  ExpectMatchesReference(op, Inputs(DType::kF32, DType::kI64, 2, 3, {0, 3, 3, 2}, rng));
  std::vector<HostTensor> inputs = Inputs(DType::kF32, DType::kI32, 2, 2, {1, 1, 2, 1}, rng);
  inputs[2].set(1, 3);
  ExpectError(op, inputs, {"'indices'[0, 0, 1, 0]: expected an index in [1, 2], got 3"});
  inputs[0] = HostTensor::Full(DType::kF32, {3, 2, 1, 2}, 0);
  ExpectError(op, inputs, {"'grad_output'", "O*R = 2", "got 3"});
}

}  // namespace
}  // namespace polyop::testing

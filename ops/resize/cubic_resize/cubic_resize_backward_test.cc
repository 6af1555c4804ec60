// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cubic_resize/cubic_resize_backward.h"

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(DType dtype, const Shape& shape, int64_t rows, int64_t columns, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {shape[0], shape[1], rows, columns}, rng), HostTensor::Uniform(dtype, shape, rng),
          HostTensor::Of(DType::kI64, {2}, {static_cast<double>(rows), static_cast<double>(columns)})};
}

TEST(CubicResizeBackward, MatchesReferenceAndIsTheAdjoint) {
  using enum CubicResize::Transformation;
  std::mt19937 rng(1);
  for (const auto mode : {kHalfPixel, kPytorchHalfPixel, kAlignCorners, kAsymmetric}) {
    for (bool exclude : {false, true}) {
      for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 40}, {21, 5}, {9, 17}}) {
        CubicResizeBackward op;
        op.coordinate_transformation_mode = mode;
        op.exclude_outside = exclude;
        op.cubic_coeff_a = -0.5f;
        for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
          ExpectMatchesReference(op, Inputs(dtype, {1, 2, 9, 17}, rows, columns, rng), ToleranceFor(dtype));
        }
        const std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 2, 9, 17}, rows, columns, rng);
        std::vector<HostTensor> grad, resized;
        ASSERT_TRUE(testing::Run(op, inputs, &grad).ok());
        ASSERT_TRUE(testing::Run(static_cast<const CubicResize&>(op), {inputs[1], inputs[2]}, &resized).ok());
        EXPECT_NEAR(InnerProduct(resized[0], inputs[0]), InnerProduct(grad[0], inputs[1]), 1e-3);
      }
    }
  }
}

TEST(CubicResizeBackward, RejectsInvalidInputs) {
  std::mt19937 rng(2);
  std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 1, 4, 4}, 2, 3, rng);
  inputs[2] = HostTensor::Of(DType::kI64, {2}, {2, 4});
  ExpectError(CubicResizeBackward{}, inputs, {"'grad_output'", "sizes[1] = 4", "got 3"});
  inputs[1] = HostTensor::Full(DType::kF32, {1, 1, 0, 4}, 0);
  inputs[2] = HostTensor::Of(DType::kI64, {2}, {2, 3});
  ExpectError(CubicResizeBackward{}, inputs, {"'sizes'[0]", "has no pixels"});
}

}  // namespace
}  // namespace polyop::testing

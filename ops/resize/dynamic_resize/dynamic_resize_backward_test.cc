// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/dynamic_resize/dynamic_resize_backward.h"

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(DType dtype, const Shape& shape, float vertical, float horizontal, std::mt19937& rng) {
  const Shape output{shape[0], shape[1], static_cast<int64_t>(static_cast<float>(shape[2]) * vertical),
                     static_cast<int64_t>(static_cast<float>(shape[3]) * horizontal)};
  return {HostTensor::Uniform(dtype, output, rng), HostTensor::Uniform(dtype, shape, rng),
          HostTensor::Of(DType::kF32, {4}, {1, 1, vertical, horizontal})};
}

TEST(DynamicResizeBackward, MatchesReferenceAndIsTheAdjoint) {
  std::mt19937 rng(1);
  for (const auto& [v, h] : {std::pair{2.0f, 2.0f}, {1.7f, 0.4f}, {0.3f, 3.2f}, {0.01f, 1.0f}}) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      ExpectMatchesReference(DynamicResizeBackward{}, Inputs(dtype, {2, 2, 11, 19}, v, h, rng), ToleranceFor(dtype));
    }
    const std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 3, 30, 50}, v, h, rng);
    std::vector<HostTensor> grad, resized;
    ASSERT_TRUE(testing::Run(DynamicResizeBackward{}, inputs, &grad).ok());
    ASSERT_TRUE(testing::Run(DynamicResize{}, {inputs[1], inputs[2]}, &resized).ok());
    EXPECT_NEAR(InnerProduct(resized[0], inputs[0]), InnerProduct(grad[0], inputs[1]), 1e-3);
  }
}

TEST(DynamicResizeBackward, RejectsInvalidInputs) {
  std::mt19937 rng(2);
  std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 1, 4, 4}, 2, 3, rng);
  inputs[2] = HostTensor::Of(DType::kF32, {4}, {1, 1, 2, 4});
  ExpectError(DynamicResizeBackward{}, inputs, {"'grad_output'", "floor(W*scales[3]) = 16", "got 12"});
  inputs[2] = HostTensor::Of(DType::kF32, {4}, {2, 1, 2, 3});
  ExpectError(DynamicResizeBackward{}, inputs, {"'scales'[0]"});
}

}  // namespace
}  // namespace polyop::testing

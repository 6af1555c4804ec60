// SPDX-License-Identifier: Apache-2.0
// The kernel is shared with modulated_deform_conv2d, which tests it in detail; this file tests the definition.
#include "ops/deform/deform_conv2d/deform_conv2d.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(const DeformConv2d& op, DType dtype, std::mt19937& rng) {
  const int64_t oh = (9 + 2 * op.padding[0] - op.dilation[0] * 2 - 1) / op.stride[0] + 1;
  const int64_t ow = (7 + 2 * op.padding[1] - op.dilation[1] - 1) / op.stride[1] + 1;
  return {HostTensor::Uniform(dtype, {2, 12, 9, 7}, rng),
          HostTensor::Uniform(dtype, {2, op.deform_groups * 12, oh, ow}, rng, -3, 3),
          HostTensor::Uniform(dtype, {6, 12 / op.groups, 3, 2}, rng)};
}

TEST(DeformConv2d, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (int64_t groups : {1, 2, 6}) {
      for (int64_t deform_groups : {1, 3, 12}) {
        for (int64_t step : {1, 2}) {
          const DeformConv2d op{{.stride = {step, 1},
                                 .padding = {1, 2},
                                 .dilation = {1, step},
                                 .groups = groups,
                                 .deform_groups = deform_groups}};
          Tolerance tolerance = ToleranceFor(dtype);
          tolerance.absolute *= 10;  // sums of up to 72 products
          ExpectMatchesReference(op, Inputs(op, dtype, rng), tolerance);
        }
      }
    }
  }
}

TEST(DeformConv2d, RejectsInvalidInputs) {
  std::mt19937 rng(2);
  std::vector<HostTensor> inputs = Inputs(DeformConv2d{}, DType::kF32, rng);
  inputs[1] = HostTensor::Full(DType::kF32, {2, 13, 7, 6}, 0);
  ExpectError(DeformConv2d{}, inputs, {"'offset'", "to be 2*deform_groups*KH*KW = 12"});
  ExpectAttributeError(*FindOp("deform_conv2d"), {{"padding", AttrValue::Int(-1)}}, {"'padding': expected", "got -1"});
}

}  // namespace
}  // namespace polyop::testing

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/feature_maps/instance_norm/instance_norm.h"

namespace polyop {
namespace {

Status InstanceNormReference(const InstanceNorm& op, const Context&, Tensor<const double, kAnyRank> input,
                             Tensor<const double, 1> scale, Tensor<const double, 1> shift,
                             Tensor<double, kAnyRank> output) {
  const int64_t channels = input.dim(1), planes = input.dim(0) * channels, count = input.size() / planes;
  for (int64_t p = 0; p < planes; ++p) {
    double mean = 0, variance = 0;
    for (int64_t i = p * count; i < (p + 1) * count; ++i) mean += input[i] / static_cast<double>(count);
    for (int64_t i = p * count; i < (p + 1) * count; ++i) {
      variance += (input[i] - mean) * (input[i] - mean) / static_cast<double>(count);
    }
    for (int64_t i = p * count; i < (p + 1) * count; ++i) {
      output[i] = (input[i] - mean) / std::sqrt(variance + static_cast<double>(op.epsilon)) * scale[p % channels] +
                  shift[p % channels];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(InstanceNorm, InstanceNormReference);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/feature_maps/instance_norm/instance_norm_backward.h"

namespace polyop {
namespace {

Status InstanceNormBackwardReference(const InstanceNormBackward& op, const Context&,
                                     Tensor<const double, kAnyRank> grad_output, Tensor<const double, kAnyRank> input,
                                     Tensor<const double, 1> scale, std::optional<Tensor<double, kAnyRank>> grad_input,
                                     std::optional<Tensor<double, 1>> grad_scale,
                                     std::optional<Tensor<double, 1>> grad_shift) {
  const int64_t channels = input.dim(1);
  if (grad_scale) std::fill_n(grad_scale->data(), channels, 0.0);
  if (grad_shift) std::fill_n(grad_shift->data(), channels, 0.0);
  if (input.size() == 0) return Status::Ok();
  const int64_t planes = input.dim(0) * channels, count = input.size() / planes;
  const auto n = static_cast<double>(count);
  for (int64_t p = 0; p < planes; ++p) {
    const double *const x = input.data() + p * count, *const grad = grad_output.data() + p * count;
    double mean = 0, variance = 0, sum = 0, sum_of_products = 0;
    for (int64_t i = 0; i < count; ++i) mean += x[i] / n;
    for (int64_t i = 0; i < count; ++i) variance += (x[i] - mean) * (x[i] - mean) / n;
    const double deviation = std::sqrt(variance + static_cast<double>(op.epsilon));
    for (int64_t i = 0; i < count; ++i) {
      sum += grad[i];
      sum_of_products += grad[i] * (x[i] - mean) / deviation;
    }
    if (grad_scale) (*grad_scale)[p % channels] += sum_of_products;
    if (grad_shift) (*grad_shift)[p % channels] += sum;
    for (int64_t i = 0; grad_input && i < count; ++i) {
      const double normalized = (x[i] - mean) / deviation;
      (*grad_input)[p * count + i] =
          scale[p % channels] / deviation * (grad[i] - sum / n - normalized * sum_of_products / n);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(InstanceNormBackward, InstanceNormBackwardReference);

}  // namespace
}  // namespace polyop

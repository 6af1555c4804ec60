// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ops/attention/qkv_attention/qkv_attention_backward.h"

namespace polyop {
namespace {

// Returns the softmax of the scaled products of a query with the keys.
std::vector<double> WeightsOf(const double* query, const double* keys, int64_t count, int64_t size) {
  std::vector<double> weights(static_cast<size_t>(count));
  double maximum = -INFINITY, sum = 0;
  for (int64_t s = 0; s < count; ++s) {
    double& product = weights[static_cast<size_t>(s)];
    for (int64_t e = 0; e < size; ++e) product += query[e] * keys[s * size + e];
    product /= std::sqrt(static_cast<double>(std::max<int64_t>(size, 1)));
    maximum = std::isnan(product) || product > maximum ? product : maximum;
  }
  for (double& weight : weights) sum += weight = std::exp(weight - maximum);
  for (double& weight : weights) weight /= sum;
  return weights;
}

Status QkvAttentionBackwardReference(const QkvAttentionBackward&, const Context&, Tensor<const double, 3> grad_output,
                                     Tensor<const double, 3> query, Tensor<const double, 3> key,
                                     Tensor<const double, 3> value, std::optional<Tensor<double, 3>> grad_query,
                                     std::optional<Tensor<double, 3>> grad_key,
                                     std::optional<Tensor<double, 3>> grad_value) {
  for (const auto& gradient : {grad_query, grad_key, grad_value}) {
    if (gradient) std::fill_n(gradient->data(), gradient->size(), 0.0);
  }
  if (grad_output.size() == 0) return Status::Ok();
  const int64_t queries = query.dim(1), size = query.dim(2), keys = key.dim(1), values = value.dim(2);
  for (int64_t row = 0; row < query.dim(0) * queries; ++row) {
    const int64_t first = row / queries * keys;  // key of the batch entry
    const double *const own = query.data() + row * size, *const grad = grad_output.data() + row * values;
    const std::vector<double> weights = WeightsOf(own, key.data() + first * size, keys, size);
    std::vector<double> of_weights(weights.size());
    double mean = 0;
    for (int64_t s = 0; s < keys; ++s) {
      for (int64_t c = 0; c < values; ++c) {
        of_weights[s] += grad[c] * value[(first + s) * values + c];
        if (grad_value) (*grad_value)[(first + s) * values + c] += weights[s] * grad[c];
      }
      mean += weights[s] * of_weights[s];
    }
    for (int64_t s = 0; s < keys; ++s) {
      const double of_product = weights[s] * (of_weights[s] - mean) / std::sqrt(static_cast<double>(size));
      for (int64_t e = 0; e < size; ++e) {
        if (grad_query) (*grad_query)[row * size + e] += of_product * key[(first + s) * size + e];
        if (grad_key) (*grad_key)[(first + s) * size + e] += of_product * own[e];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(QkvAttentionBackward, QkvAttentionBackwardReference);

}  // namespace
}  // namespace polyop

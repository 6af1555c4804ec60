// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/attention/neighborhood_attention/neighborhood_attention_backward.h"
#include "ops/attention/neighborhood_attention/neighborhood_reference.h"

namespace polyop {
namespace {

Status NeighborhoodAttentionBackwardReference(const NeighborhoodAttentionBackward& op, const Context&,
                                              Tensor<const double, kAnyRank> grad_output,
                                              Tensor<const double, kAnyRank> query, Tensor<const double, kAnyRank> key,
                                              Tensor<const double, kAnyRank> value,
                                              std::optional<Tensor<double, kAnyRank>> grad_query,
                                              std::optional<Tensor<double, kAnyRank>> grad_key,
                                              std::optional<Tensor<double, kAnyRank>> grad_value) {
  const reference::Windows windows(op, query.shape());
  const int64_t depth = query.dim(query.rank() - 1), columns = value.dim(value.rank() - 1);
  for (const auto& gradient : {grad_query, grad_key, grad_value}) {
    for (int64_t i = 0; gradient && i < gradient->size(); ++i) (*gradient)[i] = 0;
  }
  int64_t rows = 1;
  for (int i = 0; i < query.rank() - 1; ++i) rows *= query.dim(i);
  for (int64_t q = 0; q < rows; ++q) {
    const std::vector<int64_t> keys = windows.KeysOf(q);
    const std::vector<double> weights = windows.Weights(query.data() + q * depth, key.data(), keys, depth);
    std::vector<double> of_weights(keys.size(), 0.0);
    double mean = 0;
    for (size_t j = 0; j < keys.size(); ++j) {
      for (int64_t c = 0; c < columns; ++c) {
        of_weights[j] += grad_output[q * columns + c] * value[keys[j] * columns + c];
        if (grad_value) (*grad_value)[keys[j] * columns + c] += weights[j] * grad_output[q * columns + c];
      }
      mean += weights[j] * of_weights[j];
    }
    for (size_t j = 0; j < keys.size(); ++j) {
      const double of_product = weights[j] * (of_weights[j] - mean) * windows.scale();
      for (int64_t c = 0; c < depth; ++c) {
        if (grad_query) (*grad_query)[q * depth + c] += of_product * key[keys[j] * depth + c];
        if (grad_key) (*grad_key)[keys[j] * depth + c] += of_product * query[q * depth + c];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(NeighborhoodAttentionBackward, NeighborhoodAttentionBackwardReference);

}  // namespace
}  // namespace polyop

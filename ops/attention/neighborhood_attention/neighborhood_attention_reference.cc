// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/neighborhood_attention/neighborhood_attention.h"

#include <cmath>
#include <vector>

#include "ops/attention/neighborhood_attention/neighborhood_reference.h"

namespace polyop {
namespace {

Status NeighborhoodAttentionReference(const NeighborhoodAttention& op, const Context&,
                                      Tensor<const double, kAnyRank> query, Tensor<const double, kAnyRank> key,
                                      Tensor<const double, kAnyRank> value, Tensor<double, kAnyRank> output) {
  const reference::Windows windows(op, query.shape());
  const int64_t depth = query.dim(query.rank() - 1), columns = value.dim(value.rank() - 1);
  for (int64_t q = 0; q < output.size() / columns; ++q) {  // a query of a head
    const std::vector<int64_t> keys = windows.KeysOf(q);
    const std::vector<double> weights = windows.Weights(query.data() + q * depth, key.data(), keys, depth);
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (size_t j = 0; j < keys.size(); ++j) sum += weights[j] * value[keys[j] * columns + c];
      output[q * columns + c] = sum;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(NeighborhoodAttention, NeighborhoodAttentionReference);

}  // namespace
}  // namespace polyop

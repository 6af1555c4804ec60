#include <cmath>
#include <vector>

#include "ops/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace polyop {
namespace {

Status ScaledDotProductAttentionReference(const ScaledDotProductAttention&, const Context&, Tensor<const double, 3> q,
                                          Tensor<const double, 3> k, Tensor<const double, 3> v,
                                          std::optional<Tensor<const double, kAnyRank>> mask, Tensor<double, 3> out,
                                          Tensor<double, 3> weights) {
  const int64_t queries = q.dim(1), depth = q.dim(2), keys = k.dim(1), width = v.dim(2);
  for (int64_t row = 0; row < q.dim(0) * queries; ++row) {
    const int64_t b = row / queries;
    std::vector<double> logits(static_cast<size_t>(keys));
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t s = 0; s < keys; ++s) {
      double dot = 0;
      for (int64_t e = 0; e < depth; ++e) dot += q[row * depth + e] * k[(b * keys + s) * depth + e];
      double& logit = logits[static_cast<size_t>(s)];
      logit = dot / std::sqrt(static_cast<double>(depth));
      if (mask) logit += (*mask)[(mask->rank() == 3 ? row : row % queries) * keys + s];
      largest = std::fmax(largest, logit);
    }
    for (double& logit : logits) total += logit = std::exp(logit - largest);
    for (int64_t s = 0; s < keys; ++s) weights[row * keys + s] = logits[static_cast<size_t>(s)] / total;
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0;
      for (int64_t s = 0; s < keys; ++s) sum += weights[row * keys + s] * v[(b * keys + s) * width + c];
      out[row * width + c] = sum;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(ScaledDotProductAttention, ScaledDotProductAttentionF64, ScaledDotProductAttentionReference);

}  // namespace
}  // namespace polyop

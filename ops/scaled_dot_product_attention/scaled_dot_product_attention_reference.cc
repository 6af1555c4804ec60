#include <cmath>
#include <vector>

#include "ops/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace polyop {
namespace {

// The mask's element for (b, l, s): right-aligned, extents of 1 repeat.
double MaskAt(const Tensor<const double, kAnyRank>& mask, int64_t b, int64_t l, int64_t s) {
  const int64_t at[3] = {b, l, s};
  int64_t index = 0;
  for (int d = 0; d < mask.rank(); ++d) {
    index = index * mask.dim(d) + (mask.dim(d) == 1 ? 0 : at[d + 3 - mask.rank()]);
  }
  return mask[index];
}

Status AttentionReference(const ScaledDotProductAttention&, const Context&, Tensor<const double, 3> q,
                          Tensor<const double, 3> k, Tensor<const double, 3> v,
                          std::optional<Tensor<const double, kAnyRank>> mask, Tensor<double, 3> out,
                          Tensor<double, 3> weights) {
  const int64_t queries = q.dim(1), size = q.dim(2), keys = k.dim(1), values = v.dim(2);
  for (int64_t row = 0; row < q.dim(0) * queries; ++row) {
    const int64_t b = row / queries;
    std::vector<double> score(static_cast<size_t>(keys));
    double most = -INFINITY, sum = 0;
    for (int64_t s = 0; s < keys; ++s) {
      double product = 0;
      for (int64_t e = 0; e < size; ++e) product += q[row * size + e] * k[(b * keys + s) * size + e];
      score[s] = product / std::sqrt(static_cast<double>(size > 0 ? size : 1));
      if (mask) score[s] += MaskAt(*mask, b, row % queries, s);
      most = std::isnan(score[s]) || score[s] > most ? score[s] : most;
    }
    for (double& x : score) sum += x = std::exp(x - most);
    for (int64_t s = 0; s < keys; ++s) weights[row * keys + s] = score[s] / sum;
    for (int64_t c = 0; c < values; ++c) {
      double total = 0;
      for (int64_t s = 0; s < keys; ++s) total += weights[row * keys + s] * v[(b * keys + s) * values + c];
      out[row * values + c] = total;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(ScaledDotProductAttention, AttentionF64, AttentionReference);

}  // namespace
}  // namespace polyop

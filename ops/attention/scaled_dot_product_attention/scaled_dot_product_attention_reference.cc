// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_reference.h"
#include "ops/attention/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace polyop {
namespace {

// Returns the mask's element for (b, l, s). Shapes are right-aligned, and extents of 1 are repeated.
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
  const auto added = [&](int64_t b, int64_t l, int64_t s) { return mask ? MaskAt(*mask, b, l, s) : 0.0; };
  reference::Attend(q, k, v, added, out, weights.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(ScaledDotProductAttention, AttentionReference);

}  // namespace
}  // namespace polyop

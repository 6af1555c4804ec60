// SPDX-License-Identifier: Apache-2.0
// Attention in double precision, one query at a time: for reference kernels only.
#pragma once

#include <cmath>
#include <vector>

#include "core/tensor.h"

namespace polyop::reference {

/// softmax(q k^T / sqrt(E) + mask) v. mask(b, l, s) is added to a product. `weights` receives the softmax; may be null.
template <class Mask>
void Attend(const Tensor<const double, 3>& q, const Tensor<const double, 3>& k, const Tensor<const double, 3>& v,
            const Mask& mask, const Tensor<double, 3>& out, double* weights) {
  const int64_t queries = q.dim(1), size = q.dim(2), keys = k.dim(1), values = v.dim(2);
  for (int64_t row = 0; row < q.dim(0) * queries; ++row) {
    const int64_t b = row / queries;
    std::vector<double> score(static_cast<size_t>(keys));
    double maximum = -INFINITY, sum = 0;
    for (int64_t s = 0; s < keys; ++s) {
      double product = 0;
      for (int64_t e = 0; e < size; ++e) product += q[row * size + e] * k[(b * keys + s) * size + e];
      score[s] = product / std::sqrt(static_cast<double>(size > 0 ? size : 1)) + mask(b, row % queries, s);
      maximum = std::isnan(score[s]) || score[s] > maximum ? score[s] : maximum;
    }
    for (double& x : score) sum += x = std::exp(x - maximum);
    for (double& x : score) x /= sum;
    for (int64_t s = 0; s < keys && weights != nullptr; ++s) weights[row * keys + s] = score[s];
    for (int64_t c = 0; c < values; ++c) {
      double total = 0;
      for (int64_t s = 0; s < keys; ++s) total += score[s] * v[(b * keys + s) * values + c];
      out[row * values + c] = total;
    }
  }
}

}  // namespace polyop::reference

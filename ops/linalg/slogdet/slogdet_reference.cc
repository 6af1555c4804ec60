// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>
#include <vector>

#include "ops/linalg/slogdet/slogdet.h"

namespace polyop {
namespace {

// Eliminates column by column, with the largest element of the column as the pivot.
Status SlogdetReference(const Slogdet&, const Context&, Tensor<const double, kAnyRank> a, Tensor<double, kAnyRank> sign,
                        Tensor<double, kAnyRank> logabsdet) {
  const auto size = static_cast<size_t>(a.dim(a.rank() - 1));
  for (int64_t n = 0; n < sign.size(); ++n) {
    std::vector<std::vector<double>> rows(size, std::vector<double>(size));
    for (size_t e = 0; e < size * size; ++e) {
      rows[e / size][e % size] = a[n * static_cast<int64_t>(size * size) + static_cast<int64_t>(e)];
    }
    sign[n] = 1;
    logabsdet[n] = 0;
    for (size_t k = 0; k < size; ++k) {
      size_t best = k;
      for (size_t i = k + 1; i < size; ++i) {
        if (std::fabs(rows[i][k]) > std::fabs(rows[best][k])) best = i;
      }
      if (best != k) sign[n] = -sign[n];
      std::swap(rows[k], rows[best]);
      const double pivot = rows[k][k];
      sign[n] *= pivot > 0 ? 1 : pivot < 0 ? -1 : 0;
      logabsdet[n] += std::log(std::fabs(pivot));
      for (size_t i = k + 1; i < size && pivot != 0; ++i) {
        const double factor = rows[i][k] / pivot;
        for (size_t j = k; j < size; ++j) rows[i][j] -= factor * rows[k][j];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Slogdet, SlogdetReference);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/linalg/cdist/cdist.h"

namespace polyop {
namespace {

double Distance(const double* a, const double* b, int64_t size, double p) {
  double sum = 0;
  for (int64_t d = 0; d < size; ++d) {
    const double difference = std::fabs(a[d] - b[d]);
    if (std::isnan(difference)) return NAN;
    if (p == 0) {
      sum += difference != 0 ? 1 : 0;
    } else if (std::isinf(p)) {
      sum = std::max(sum, difference);
    } else {
      sum += std::pow(difference, p);
    }
  }
  return p == 0 || std::isinf(p) ? sum : std::pow(sum, 1 / p);
}

Status CdistReference(const Cdist& op, const Context&, Tensor<const double, kAnyRank> a,
                      Tensor<const double, kAnyRank> b, Tensor<double, kAnyRank> distances) {
  const int rank = a.rank();
  const int64_t rows = a.dim(rank - 2), others = b.dim(rank - 2), size = a.dim(rank - 1);
  const int64_t batches = distances.size() / (distances.dim(rank - 2) * distances.dim(rank - 1));
  double* to = distances.data();
  for (int64_t n = 0; n < batches; ++n) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = op.condensed != 0 ? i + 1 : 0; j < others; ++j) {
        *to++ = Distance(a.data() + (n * rows + i) * size, b.data() + (n * others + j) * size, size, op.p);
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Cdist, CdistReference);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/points/knn/knn.h"

namespace polyop {
namespace {

Status KnnReference(const Knn& op, const Context&, Tensor<const double, 3> xyz,
                    std::optional<Tensor<const double, 3>> center, Tensor<int32_t, 3> idx) {
  const Tensor<const double, 3>& queries = center ? *center : xyz;
  const int64_t points = xyz.dim(op.transposed ? 2 : 1), centres = idx.dim(2);
  const auto at = [&](const Tensor<const double, 3>& t, int64_t count, int64_t batch, int64_t i, int64_t axis) {
    return t[op.transposed ? (batch * 3 + axis) * count + i : (batch * count + i) * 3 + axis];
  };
  for (int64_t b = 0; b < xyz.dim(0); ++b) {
    for (int64_t m = 0; m < centres; ++m) {
      std::vector<std::pair<double, int32_t>> found;
      for (int64_t n = 0; n < points; ++n) {
        double squared = 0;
        for (int64_t axis = 0; axis < 3; ++axis) {
          const double d = at(xyz, points, b, n, axis) - at(queries, centres, b, m, axis);
          squared = squared + d * d;
        }
        if (std::isfinite(squared)) found.emplace_back(squared, static_cast<int32_t>(n));
      }
      std::sort(found.begin(), found.end());
      for (int64_t k = 0; k < op.k; ++k) {
        const bool has = k < static_cast<int64_t>(found.size());
        idx[(b * op.k + k) * centres + m] = has ? found[static_cast<size_t>(k)].second : 0;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Knn, KnnReference);

}  // namespace
}  // namespace polyop

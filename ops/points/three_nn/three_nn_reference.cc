// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/points/three_nn/three_nn.h"

namespace polyop {
namespace {

Status ThreeNNReference(const ThreeNN&, const Context&, Tensor<const double, 3> target, Tensor<const double, 3> source,
                        Tensor<double, 3> dist, Tensor<int32_t, 3> idx) {
  const int64_t targets = target.dim(1), sources = source.dim(1);
  for (int64_t i = 0; i < target.dim(0) * targets; ++i) {
    double squared[3] = {INFINITY, INFINITY, INFINITY};
    int32_t nearest[3] = {0, 0, 0};
    const double* at = target.data() + i * 3;
    for (int64_t s = 0; s < sources; ++s) {
      const double* point = source.data() + (i / targets * sources + s) * 3;
      const double x = at[0] - point[0], y = at[1] - point[1], z = at[2] - point[2];
      const double candidate = (x * x + y * y) + z * z;
      int rank = 3;
      while (rank > 0 && candidate < squared[rank - 1]) --rank;
      for (int k = 2; k > rank; --k) {
        squared[k] = squared[k - 1];
        nearest[k] = nearest[k - 1];
      }
      if (rank == 3) continue;
      squared[rank] = candidate;
      nearest[rank] = static_cast<int32_t>(s);
    }
    for (int k = 0; k < 3; ++k) {
      dist[i * 3 + k] = std::sqrt(squared[k]);
      idx[i * 3 + k] = nearest[k];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(ThreeNN, ThreeNNReference);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include "ops/points/assign_score_withk/assign_score_withk.h"

namespace polyop {
namespace {

template <class I>
Status AssignScoreWithkReference(const AssignScoreWithk&, const Context&, Tensor<const double, 4> scores,
                                 Tensor<const double, 4> point_features, Tensor<const double, 4> center_features,
                                 Tensor<const I, 3> knn_idx, Tensor<double, 4> output) {
  const int64_t matrices = scores.dim(3), points = point_features.dim(1), size = point_features.dim(3);
  const int64_t queries = output.dim(2), neighbours = output.dim(3);
  for (int64_t element = 0; element < output.size(); ++element) {
    const int64_t k = element % neighbours, query = element / neighbours % queries;
    const int64_t o = element / neighbours / queries % size, batch = element / neighbours / queries / size;
    const int64_t row = (batch * queries + query) * neighbours, point = knn_idx[row + k], center = knn_idx[row];
    double sum = 0;
    for (int64_t m = 0; m < matrices && point >= 0 && point < points && center >= 0 && center < points; ++m) {
      sum +=
          scores[(row + k) * matrices + m] * (point_features[((batch * points + point) * matrices + m) * size + o] -
                                              center_features[((batch * points + center) * matrices + m) * size + o]);
    }
    output[element] = sum;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(AssignScoreWithk, AssignScoreWithkReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/points/assign_score_withk/assign_score_withk_backward.h"

namespace polyop {
namespace {

template <class I>
Status AssignScoreWithkBackwardReference(const AssignScoreWithkBackward&, const Context&,
                                         Tensor<const double, 4> grad_output, Tensor<const double, 4> scores,
                                         Tensor<const double, 4> point_features,
                                         Tensor<const double, 4> center_features, Tensor<const I, 3> knn_idx,
                                         std::optional<Tensor<double, 4>> grad_scores,
                                         std::optional<Tensor<double, 4>> grad_point_features,
                                         std::optional<Tensor<double, 4>> grad_center_features) {
  const int64_t matrices = scores.dim(3), points = point_features.dim(1), size = point_features.dim(3);
  const int64_t queries = scores.dim(1), neighbours = scores.dim(2);
  for (const auto& output : {grad_scores, grad_point_features, grad_center_features}) {
    if (output) std::fill_n(output->data(), output->size(), 0.0);
  }
  for (int64_t element = 0; element < grad_output.size(); ++element) {
    const int64_t k = element % neighbours, query = element / neighbours % queries;
    const int64_t o = element / neighbours / queries % size, batch = element / neighbours / queries / size;
    const int64_t row = (batch * queries + query) * neighbours, point = knn_idx[row + k], center = knn_idx[row];
    if (point < 0 || point >= points || center < 0 || center >= points) continue;
    for (int64_t m = 0; m < matrices; ++m) {
      const int64_t score = (row + k) * matrices + m;
      const int64_t p = ((batch * points + point) * matrices + m) * size + o;
      const int64_t c = ((batch * points + center) * matrices + m) * size + o;
      if (grad_scores) (*grad_scores)[score] += grad_output[element] * (point_features[p] - center_features[c]);
      if (grad_point_features) (*grad_point_features)[p] += grad_output[element] * scores[score];
      if (grad_center_features) (*grad_center_features)[c] -= grad_output[element] * scores[score];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(AssignScoreWithkBackward, AssignScoreWithkBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop

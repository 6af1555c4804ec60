// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/check_indices.h"
#include "ops/points/three_interpolate/three_interpolate_backward.h"

namespace polyop {
namespace {

template <class I>
Status ThreeInterpolateBackwardReference(const ThreeInterpolateBackward&, const Context& context,
                                         Tensor<const double, 3> grad_interpolated, Tensor<const double, 3> features,
                                         Tensor<const I, 3> idx, Tensor<const double, 3> weight,
                                         std::optional<Tensor<double, 3>> grad_features,
                                         std::optional<Tensor<double, 3>> grad_weight) {
  const int64_t channels = features.dim(1), columns = features.dim(2), points = idx.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx.data(), idx.size(), columns, "a column of 'features'"));
  if (grad_features) std::fill_n(grad_features->data(), grad_features->size(), 0.0);
  if (grad_weight) std::fill_n(grad_weight->data(), grad_weight->size(), 0.0);
  for (int64_t i = 0; i < grad_interpolated.size(); ++i) {
    const int64_t row = i / points, first = (row / channels * points + i % points) * 3;
    for (int64_t at = first; at < first + 3; ++at) {
      const int64_t feature = row * columns + idx[at];
      if (grad_features && weight[at] != 0) (*grad_features)[feature] += weight[at] * grad_interpolated[i];
      if (grad_weight) (*grad_weight)[at] += features[feature] * grad_interpolated[i];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(ThreeInterpolateBackward, ThreeInterpolateBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/cpu/check_indices.h"
#include "ops/points/chamfer_distance/chamfer_distance_backward.h"

namespace polyop {
namespace {

// Adds the gradients of the distances from the points of one cloud to those of the other one.
void AddGradients(Tensor<const double, 2> grad, Tensor<const double, 3> from, Tensor<const double, 3> to,
                  Tensor<const int32_t, 2> idx, std::optional<Tensor<double, 3>> grad_from,
                  std::optional<Tensor<double, 3>> grad_to) {
  const int64_t coordinates = from.dim(2);
  for (int64_t i = 0; i < idx.size(); ++i) {
    const int64_t at = i * coordinates, near = (i / from.dim(1) * to.dim(1) + idx[i]) * coordinates;
    bool finite = true;
    for (int64_t a = 0; a < coordinates; ++a) finite &= std::isfinite(from[at + a]) && std::isfinite(to[near + a]);
    for (int64_t a = 0; finite && a < coordinates; ++a) {
      const double slope = 2 * grad[i] * (from[at + a] - to[near + a]);
      if (grad_from) (*grad_from)[at + a] += slope;
      if (grad_to) (*grad_to)[near + a] -= slope;
    }
  }
}

Status ChamferDistanceBackwardReference(const ChamferDistanceBackward&, const Context& context,
                                        Tensor<const double, 2> grad_dist1, Tensor<const double, 2> grad_dist2,
                                        Tensor<const double, 3> xyz1, Tensor<const double, 3> xyz2,
                                        Tensor<const int32_t, 2> idx1, Tensor<const int32_t, 2> idx2,
                                        std::optional<Tensor<double, 3>> grad_xyz1,
                                        std::optional<Tensor<double, 3>> grad_xyz2) {
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx1", idx1.data(), idx1.size(), xyz2.dim(1), "a point of 'xyz2'"));
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx2", idx2.data(), idx2.size(), xyz1.dim(1), "a point of 'xyz1'"));
  if (grad_xyz1) std::fill_n(grad_xyz1->data(), grad_xyz1->size(), 0.0);
  if (grad_xyz2) std::fill_n(grad_xyz2->data(), grad_xyz2->size(), 0.0);
  AddGradients(grad_dist1, xyz1, xyz2, idx1, grad_xyz1, grad_xyz2);
  AddGradients(grad_dist2, xyz2, xyz1, idx2, grad_xyz2, grad_xyz1);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(ChamferDistanceBackward, ChamferDistanceBackwardReference);

}  // namespace
}  // namespace polyop

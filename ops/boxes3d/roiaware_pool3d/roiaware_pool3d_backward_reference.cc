// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/boxes3d/roiaware_pool3d/cell_points_reference.h"
#include "ops/boxes3d/roiaware_pool3d/roiaware_pool3d_backward.h"

namespace polyop {
namespace {

Status RoiawarePool3dBackwardReference(const RoiawarePool3dBackward& op, const Context&,
                                       Tensor<const double, 5> grad_pooled, Tensor<const double, 2> rois,
                                       Tensor<const double, 2> points, Tensor<const double, 2> features,
                                       Tensor<double, 2> grad_features) {
  const int64_t channels = features.dim(1), cells = op.out_size[0] * op.out_size[1] * op.out_size[2];
  std::fill_n(grad_features.data(), grad_features.size(), 0.0);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    for (const auto& [cell, cell_points] : reference::PointsOfCells(op, rois.data() + 7 * r, points)) {
      for (int64_t c = 0; c < channels; ++c) {
        const double grad = grad_pooled[(r * cells + cell) * channels + c];
        int64_t largest = -1;
        for (int64_t p : cell_points) {
          const double value = features[p * channels + c];
          if (op.mode == RoiawarePool3d::Mode::kAvg) {
            grad_features[p * channels + c] += grad / static_cast<double>(cell_points.size());
          } else if (!std::isnan(value) && (largest < 0 || value > features[largest * channels + c])) {
            largest = p;
          }
        }
        if (largest >= 0) grad_features[largest * channels + c] += grad;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RoiawarePool3dBackward, RoiawarePool3dBackwardReference);

}  // namespace
}  // namespace polyop

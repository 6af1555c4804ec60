// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/boxes3d/roiaware_pool3d/cell_points_reference.h"

namespace polyop {
namespace {

double Pool(const std::vector<double>& values, RoiawarePool3d::Mode mode) {
  double sum = 0, maximum = NAN;
  for (double v : values) {
    sum += v;
    maximum = std::fmax(maximum, v);
  }
  if (mode == RoiawarePool3d::Mode::kAvg) return sum / static_cast<double>(values.size());
  return std::isnan(maximum) ? 0 : maximum;
}

Status RoiawarePool3dReference(const RoiawarePool3d& op, const Context&, Tensor<const double, 2> rois,
                               Tensor<const double, 2> points, Tensor<const double, 2> features,
                               Tensor<double, 5> pooled) {
  const int64_t channels = features.dim(1), cells = op.out_size[0] * op.out_size[1] * op.out_size[2];
  std::fill_n(pooled.data(), pooled.size(), 0.0);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    for (const auto& [cell, cell_points] : reference::PointsOfCells(op, rois.data() + 7 * r, points)) {
      for (int64_t c = 0; c < channels; ++c) {
        std::vector<double> values;
        for (int64_t p : cell_points) values.push_back(features[p * channels + c]);
        pooled[(r * cells + cell) * channels + c] = Pool(values, op.mode);
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RoiawarePool3d, RoiawarePool3dReference);

}  // namespace
}  // namespace polyop

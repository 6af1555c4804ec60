#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "families/boxes3d/box3d_reference.h"
#include "ops/roiaware_pool3d/roiaware_pool3d.h"

namespace polyop {
namespace {

int64_t CellOfAxis(double from_side, double size, int64_t cells) {
  const double cell = std::trunc(from_side / (size / static_cast<double>(cells)));
  return std::isnan(cell) ? 0 : static_cast<int64_t>(std::clamp(cell, 0.0, static_cast<double>(cells - 1)));
}

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
    const double* const box = rois.data() + 7 * r;
    std::map<int64_t, std::vector<int64_t>> points_of;
    for (int64_t p = 0; p < points.dim(0); ++p) {
      if (!IsInBox(points.data() + 3 * p, box)) continue;
      double position[3];
      ToBoxFrame(points.data() + 3 * p, box, position);
      int64_t cell = 0;
      for (int axis = 0; axis < 3; ++axis) {
        const double from_side = axis < 2 ? position[axis] + box[3 + axis] / 2 : position[axis];
        cell = cell * op.out_size[static_cast<size_t>(axis)] +
               CellOfAxis(from_side, box[3 + axis], op.out_size[static_cast<size_t>(axis)]);
      }
      std::vector<int64_t>& cell_points = points_of[cell];
      if (static_cast<int64_t>(cell_points.size()) < op.max_pts_per_voxel - 1) cell_points.push_back(p);
    }
    for (const auto& [cell, cell_points] : points_of) {
      for (int64_t c = 0; c < channels && !cell_points.empty(); ++c) {
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

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/boxes3d/decode_bbox3d/decode_bbox3d.h"

namespace polyop {
namespace {

double GridCoordinate(double low, double high, int64_t at, int64_t count) {
  return count == 1 ? low : low + static_cast<double>(at) * ((high - low) / static_cast<double>(count - 1));
}

Status DecodeBbox3dReference(const DecodeBbox3d& op, const Context&, Tensor<const double, 4> cls,
                             Tensor<const double, 4> box, Tensor<const double, 4> dir, Tensor<double, 3> boxes,
                             Tensor<int32_t, 1> num) {
  const int64_t height = cls.dim(1), width = cls.dim(2), anchors = op.anchors.size() / 4;
  const int64_t classes = cls.dim(3) / anchors;
  const auto& range = op.point_cloud_range;
  std::fill_n(boxes.data(), boxes.size(), 0.0);
  for (int64_t n = 0; n < boxes.dim(0); ++n) {
    int32_t kept = 0;
    for (int64_t i = 0; i < height * width * anchors; ++i) {
      const int64_t row = i / anchors / width, column = i / anchors % width, a = i % anchors;
      const int64_t at = n * height * width * anchors + i;
      int64_t best = -1;
      for (int64_t c = 0; c < classes; ++c) {
        const double logit = cls[at * classes + c];
        if (!std::isnan(logit) && (best < 0 || logit > cls[at * classes + best])) best = c;
      }
      if (best < 0) continue;
      const double score = 1 / (1 + std::exp(-cls[at * classes + best]));
      if (score < static_cast<double>(op.score_thresh)) continue;
      const double dx = op.anchors[4 * a], dy = op.anchors[4 * a + 1], dz = op.anchors[4 * a + 2];
      const double* const b = box.data() + 7 * at;
      const double period = 2 * std::acos(-1.0) / static_cast<double>(op.num_dir_bins);
      const double rotation = b[6] + op.anchors[4 * a + 3] - op.dir_offset;
      const double wrapped = rotation - std::floor(rotation / period + op.dir_limit_offset) * period;
      const int label = dir[2 * at] > dir[2 * at + 1] ? 0 : 1;
      double* const to = boxes.data() + (n * boxes.dim(1) + kept++) * 9;
      to[0] = GridCoordinate(range[0], range[3], column, width) + b[0] * std::hypot(dx, dy);
      to[1] = GridCoordinate(range[1], range[4], row, height) + b[1] * std::hypot(dx, dy);
      to[2] = op.anchor_bottom_height[a / 2] + dz / 2 + b[2] * dz;
      to[3] = std::exp(b[3]) * dx;
      to[4] = std::exp(b[4]) * dy;
      to[5] = std::exp(b[5]) * dz;
      to[6] = wrapped + op.dir_offset + period * label;
      to[7] = static_cast<double>(best);
      to[8] = score;
    }
    num[n] = kept;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DecodeBbox3d, DecodeBbox3dReference);

}  // namespace
}  // namespace polyop

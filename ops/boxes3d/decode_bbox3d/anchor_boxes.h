// SPDX-License-Identifier: Apache-2.0
// Class and box of an anchor, for CPU and GPU.
#pragma once

#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"
#include "ops/boxes3d/decode_bbox3d/decode_bbox3d.h"

namespace polyop {

/// Returns the class of the largest logit that is at least `min_logit`, or -1.
template <class T>
POLYOP_HD int32_t BestClass(const T* logits, int64_t classes, float min_logit) {
  int32_t best = -1;
  float max_logit = min_logit;
  for (int64_t c = 0; c < classes; ++c) {
    const float logit = ToFloat(logits[c]);
    if (best < 0 ? !(logit >= min_logit) : !(logit > max_logit)) continue;
    best = static_cast<int32_t>(c);
    max_logit = logit;
  }
  return best;
}

/// The anchors of a grid of height x width cells. Anchor number = (row * width + column) * anchors + anchor.
class AnchorBoxes {
 public:
  AnchorBoxes(const DecodeBbox3d& op, int64_t height, int64_t width)
      : op_(op),
        width_(static_cast<uint32_t>(width)),
        step_x_(width > 1 ? (op.point_cloud_range[3] - double{op.point_cloud_range[0]}) / (width - 1) : 0),
        step_y_(height > 1 ? (op.point_cloud_range[4] - double{op.point_cloud_range[1]}) / (height - 1) : 0),
        period_(2 * 3.14159265358979323846 / static_cast<double>(op.num_dir_bins)) {}

  /// Writes the nine values of an anchor to `to`. `box` and `dir` are its offsets and direction logits.
  template <class T>
  POLYOP_HD void Decode(int64_t number, const T* box, const T* dir, int32_t label, float logit, T* to) const {
    // All values fit in 32 bits, whose divisions are faster.
    const auto index = static_cast<uint32_t>(number), anchors = static_cast<uint32_t>(op_.anchors.count / 4);
    const uint32_t cell = index / anchors, a = index % anchors;
    const float* const anchor = op_.anchors.items.data() + 4 * a;
    const double dx = anchor[0], dy = anchor[1], dz = anchor[2], diagonal = std::sqrt(dx * dx + dy * dy);
    const double x = op_.point_cloud_range[0] + static_cast<double>(cell % width_) * step_x_;
    const double y = op_.point_cloud_range[1] + static_cast<double>(cell / width_) * step_y_;
    const double z = dz / 2 + op_.anchor_bottom_height.items.data()[a / 2];
    double b[7];
    for (int i = 0; i < 7; ++i) b[i] = static_cast<double>(ToFloat(box[i]));
    const double rotation = b[6] + anchor[3] - op_.dir_offset;
    const double wrapped = rotation - std::floor(rotation / period_ + op_.dir_limit_offset) * period_;
    const double direction = ToFloat(dir[0]) > ToFloat(dir[1]) ? 0 : 1;
    const double row[9] = {x + b[0] * diagonal,
                           y + b[1] * diagonal,
                           z + b[2] * dz,
                           std::exp(b[3]) * dx,
                           std::exp(b[4]) * dy,
                           std::exp(b[5]) * dz,
                           wrapped + op_.dir_offset + period_ * direction,
                           static_cast<double>(label),
                           1 / (1 + std::exp(-static_cast<double>(logit)))};
    for (int i = 0; i < 9; ++i) to[i] = FromFloat<T>(static_cast<float>(row[i]));
  }

 private:
  DecodeBbox3d op_;
  uint32_t width_;
  double step_x_, step_y_, period_;
};

}  // namespace polyop

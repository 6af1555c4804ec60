// SPDX-License-Identifier: Apache-2.0
// The points of a box at which features are sampled.
#pragma once

#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"
#include "ops/rois/rotated_feature_align/rotated_feature_align.h"

namespace polyop {

/// Calls visit(y, x) for the points of a box (y, x, w, h, angle), in pixels. A box that is not finite has none.
template <class T, class Visit>
POLYOP_HD void ForEachPoint(const RotatedFeatureAlign& op, const T* box, const Visit& visit) {
  double v[5];
  for (int k = 0; k < 5; ++k) v[k] = ToFloat(box[k]);
  const double scale = op.spatial_scale, y = v[0] * scale, x = v[1] * scale;
  const double half_w = v[2] * scale / 2, half_h = v[3] * scale / 2;
  if (!std::isfinite(y + x + half_w + half_h + v[4])) return;
  visit(y, x);
  if (op.points == 1) return;
  const double wx = std::cos(v[4]) * half_w, wy = std::sin(v[4]) * half_w;
  const double hx = -std::sin(v[4]) * half_h, hy = std::cos(v[4]) * half_h;
  visit(y + wy + hy, x + wx + hx);
  visit(y - wy + hy, x - wx + hx);
  visit(y - wy - hy, x - wx - hx);
  visit(y + wy - hy, x + wx - hx);
}

}  // namespace polyop

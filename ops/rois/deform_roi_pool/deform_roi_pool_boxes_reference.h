// SPDX-License-Identifier: Apache-2.0
// The bins of a box in double precision: for reference kernels only.
#pragma once

#include <cmath>

#include "ops/rois/deform_roi_pool/deform_roi_pool.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop::reference {

/// Returns bin `b` of roi number r, whose row is `roi`, as a shifted box with a single bin. `offsets` are those of all
/// rois, or null.
inline PooledBox ShiftedBin(const DeformRoiPool& op, const double* roi, const double* offsets, int64_t r, int64_t b) {
  const int64_t bins = op.pooled_height * op.pooled_width;
  const PooledBox box = PooledBox::Upright(roi[1], roi[2], roi[3], roi[4], op.spatial_scale, true);
  PooledBox bin = box;
  bin.width /= static_cast<double>(op.pooled_width);
  bin.height /= static_cast<double>(op.pooled_height);
  bin.x += bin.width * static_cast<double>(b % op.pooled_width);
  bin.y += bin.height * static_cast<double>(b / op.pooled_width);
  if (offsets != nullptr) {
    bin.x += op.gamma * box.width * offsets[2 * r * bins + b];
    bin.y += op.gamma * box.height * offsets[(2 * r + 1) * bins + b];
  }
  bin.finite = box.finite && std::isfinite(bin.x) && std::isfinite(bin.y);
  return bin;
}

}  // namespace polyop::reference

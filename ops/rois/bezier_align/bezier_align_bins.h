// SPDX-License-Identifier: Apache-2.0
// The positions of the bins between two Bezier curves.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/rois/bezier_align/bezier_align.h"
#include "ops/rois/free_bins_pool.h"

namespace polyop {

struct BezierBins {
  RoiAxis y, x;                     // of one bin; they start at the first point of the upper curve
  double upper[4][2], lower[4][2];  // x and y of the control points from left to right, in pixels
  int64_t rows, columns;

  /// Returns the bins of a row (batch index, 8 points).
  template <class T>
  POLYOP_HD static BezierBins Make(const BezierAlign& op, const T* row) {
    BezierBins bins{{}, {}, {}, {}, op.output_height, op.output_width};
    const double scale = op.spatial_scale, shift = op.aligned ? 0.5 : 0.0;
    double size[2];
    bool finite = true;
    for (int axis = 0; axis < 2; ++axis) {
      // Subtracts before the shift: a tiny extent must not be rounded to 0, because it decides whether a bin has
      // samples.
      const auto between = [&](int from, int to) {
        return std::fabs(ToFloat(row[1 + 2 * to + axis]) * scale - ToFloat(row[1 + 2 * from + axis]) * scale);
      };
      size[axis] = std::max(between(0, 3), between(4, 7));
      for (int p = 0; p < 4; ++p) {
        bins.upper[p][axis] = ToFloat(row[1 + 2 * p + axis]) * scale - shift;
        bins.lower[p][axis] = ToFloat(row[15 - 2 * p + axis]) * scale - shift;
        finite = finite && std::fabs(bins.upper[p][axis]) < INFINITY && std::fabs(bins.lower[p][axis]) < INFINITY;
      }
    }
    if (!finite) return bins;  // axes without samples
    const double min_size = op.aligned ? 0.0 : 1.0;
    bins.x = RoiAxis::Between(0, size[0], min_size, bins.columns, op.sampling_ratio);
    bins.y = RoiAxis::Between(0, size[1], min_size, bins.rows, op.sampling_ratio);
    bins.x.start = bins.upper[0][0];
    bins.y.start = bins.upper[0][1];
    return bins;
  }
  POLYOP_HD BinStart Start(int64_t bin) const {
    const double u = static_cast<double>(bin % columns) / static_cast<double>(columns);
    const double v = static_cast<double>(bin / columns) / static_cast<double>(rows);
    const double rest = 1 - u;
    const double weights[4] = {rest * rest * rest, 3 * u * rest * rest, 3 * u * u * rest, u * u * u};
    double at[2] = {-0.5 * x.bin, -0.5 * y.bin};
    for (int axis = 0; axis < 2; ++axis) {
      for (int p = 0; p < 4; ++p) at[axis] += weights[p] * (upper[p][axis] + v * (lower[p][axis] - upper[p][axis]));
    }
    return {at[1], at[0]};
  }
};

}  // namespace polyop

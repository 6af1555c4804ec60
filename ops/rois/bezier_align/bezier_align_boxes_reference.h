// SPDX-License-Identifier: Apache-2.0
// The bins between two Bezier curves in double precision: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>

#include "ops/rois/bezier_align/bezier_align.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop::reference {

/// Evaluates a cubic Bezier curve at parameter `part` by de Casteljau's algorithm.
inline std::complex<double> OnCurve(const std::complex<double> points[4], double part) {
  using Complex = std::complex<double>;
  const auto between = [part](Complex from, Complex to) { return from + part * (to - from); };
  const Complex middle = between(points[1], points[2]);
  return between(between(between(points[0], points[1]), middle), between(middle, between(points[2], points[3])));
}

/// Returns bin `b` of a row (batch index, 8 points) as an upright box with a single bin.
inline PooledBox BezierBin(const BezierAlign& op, const double* roi, int64_t b) {
  using Complex = std::complex<double>;
  Complex upper[4], lower[4];  // from left to right
  for (int p = 0; p < 4; ++p) {
    upper[p] = Complex(roi[1 + 2 * p], roi[2 + 2 * p]) * static_cast<double>(op.spatial_scale);
    lower[p] = Complex(roi[15 - 2 * p], roi[16 - 2 * p]) * static_cast<double>(op.spatial_scale);
  }
  double wide = std::max(std::abs(upper[0].real() - upper[3].real()), std::abs(lower[0].real() - lower[3].real()));
  double high = std::max(std::abs(upper[0].imag() - upper[3].imag()), std::abs(lower[0].imag() - lower[3].imag()));
  if (!op.aligned) {
    wide = std::max(wide, 1.0);
    high = std::max(high, 1.0);
  }
  const auto rows = static_cast<double>(op.output_height), columns = static_cast<double>(op.output_width);
  const double along = static_cast<double>(b % op.output_width) / columns;
  const double down = static_cast<double>(b / op.output_width) / rows;
  const Complex middle = OnCurve(upper, along) * (1 - down) + OnCurve(lower, along) * down -
                         (op.aligned ? Complex(0.5, 0.5) : Complex(0, 0));
  const bool finite = std::all_of(roi, roi + 17, [](double v) { return std::isfinite(v); });
  const double width = wide / columns, height = high / rows;
  return {middle.real(), middle.imag(), 0, -width / 2, -height / 2, width, height, finite};
}

}  // namespace polyop::reference

// SPDX-License-Identifier: Apache-2.0
// The exact overlap test of two upright boxes, on CPU and GPU.
#pragma once

#include "core/host_device.h"

namespace polyop {

/// Areas of intersection and union of two boxes (x1, y1, x2, y2). `offset` is added to every width and height. Computed
/// in double, so that every processor decides alike. The intersection of NaN or reversed boxes is 0.
struct BoxOverlap {
  double intersection = 0, united = 0;

  POLYOP_HD static BoxOverlap Of(const float* a, const float* b, double offset) {
    const float x1 = a[0] > b[0] ? a[0] : b[0], y1 = a[1] > b[1] ? a[1] : b[1];
    const float x2 = a[2] < b[2] ? a[2] : b[2], y2 = a[3] < b[3] ? a[3] : b[3];
    const double width = Length(x1, x2, offset), height = Length(y1, y2, offset);
    const bool numbers = a[0] == a[0] && a[1] == a[1] && a[2] == a[2] && a[3] == a[3] && b[0] == b[0] && b[1] == b[1] &&
                         b[2] == b[2] && b[3] == b[3];
    BoxOverlap overlap;
    if (!(width > 0) || !(height > 0) || !numbers) return overlap;
    overlap.intersection = width * height;
    overlap.united = Length(a[0], a[2], offset) * Length(a[1], a[3], offset) +
                     Length(b[0], b[2], offset) * Length(b[1], b[3], offset) - overlap.intersection;
    return overlap;
  }
  POLYOP_HD bool More(double threshold) const { return intersection > threshold * united; }
  /// Returns whether the IoU is at least `threshold`; false for disjoint boxes, even if the threshold is 0.
  POLYOP_HD bool AtLeast(double threshold) const { return intersection > 0 && intersection >= threshold * united; }

 private:
  POLYOP_HD static double Length(float low, float high, double offset) {
    return static_cast<double>(high) - static_cast<double>(low) + offset;
  }
};

/// Returns a number below the width in float of every intersection that has a positive width. With an offset, a small
/// width is rounded to 0.
POLYOP_HD inline float LeastExtent(float offset) { return offset != 0 ? -0x1p-126f : 0; }

/// Returns whether the IoU exceeds the threshold when every step is rounded to float, in ONNX Runtime's order: 7 of 10
/// pixels do not exceed 0.7f. Boxes are (low, low, high, high); a box without area overlaps nothing.
POLYOP_HD inline bool OverlapsInFloat(const float* a, const float* b, float threshold) {
  const float x1 = a[0] > b[0] ? a[0] : b[0], y1 = a[1] > b[1] ? a[1] : b[1];
  const float x2 = a[2] < b[2] ? a[2] : b[2], y2 = a[3] < b[3] ? a[3] : b[3];
  if (x2 <= x1 || y2 <= y1) return false;
  const float shared = (x2 - x1) * (y2 - y1);
  const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
  const float united = area_a + area_b - shared;
  if (shared <= 0 || area_a <= 0 || area_b <= 0 || united <= 0) return false;
  return shared / united > threshold;
}

}  // namespace polyop

// Whether two upright boxes overlap too much: the exact decision, on CPU and GPU.
#pragma once

#include "core/host_device.h"

namespace polyop {

/// The shared area of boxes (x1, y1, x2, y2), 0 if they do not touch, and the area of both together. `offset` is added
/// to every width and height. In double, so that every processor decides alike; NaN and reversed boxes share nothing.
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
  /// Boxes that share nothing have no IoU of 0 or more.
  POLYOP_HD bool AtLeast(double threshold) const { return intersection > 0 && intersection >= threshold * united; }

 private:
  POLYOP_HD static double Length(float low, float high, double offset) {
    return static_cast<double>(high) - static_cast<double>(low) + offset;
  }
};

/// Whether the IoU is greater than the threshold where all is rounded to float at each step, in ONNX Runtime's order: 7
/// shared pixels of 10 are not more than 0.7f. Boxes (low, low, high, high); without an area nothing overlaps.
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

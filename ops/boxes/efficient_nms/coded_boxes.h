// SPDX-License-Identifier: Apache-2.0
// Decodes the boxes that detectors output to corners, on CPU and GPU.
#pragma once

#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// Boxes as rows of four numbers, one row per class or one for all classes, with optional anchors.
template <class T>
struct CodedBoxes {
  const T* boxes;    // [images, count, box_classes, 4]
  const T* anchors;  // [1 or images, count, 4], or null
  int64_t count, box_classes;
  bool one_set_of_anchors;
  bool center_size;  // (x, y, width, height) instead of (x1, y1, x2, y2)

  /// Writes the box as (x1, y1, x2, y2). Reversed corners stay reversed.
  POLYOP_HD void Corners(int64_t image, int64_t box, int64_t label, float* corners) const {
    const T* const row = boxes + ((image * count + box) * box_classes + (box_classes == 1 ? 0 : label)) * 4;
    float b[4] = {ToFloat(row[0]), ToFloat(row[1]), ToFloat(row[2]), ToFloat(row[3])};
    if (anchors != nullptr) {
      const T* const at = anchors + ((one_set_of_anchors ? 0 : image) * count + box) * 4;
      float a[4] = {ToFloat(at[0]), ToFloat(at[1]), ToFloat(at[2]), ToFloat(at[3])};
      if (center_size) {
        b[0] = b[0] * a[2] + a[0];
        b[1] = b[1] * a[3] + a[1];
        b[2] = Exp(b[2]) * a[2];
        b[3] = Exp(b[3]) * a[3];
      } else {
        InOrder(a);
        InOrder(b);
        for (int i = 0; i < 4; ++i) b[i] += a[i];
      }
    }
    if (center_size) {
      const float half_width = b[2] * 0.5f, half_height = b[3] * 0.5f;
      corners[0] = b[0] - half_width;
      corners[1] = b[1] - half_height;
      corners[2] = b[0] + half_width;
      corners[3] = b[1] + half_height;
    } else {
      for (int i = 0; i < 4; ++i) corners[i] = b[i];
    }
  }

  /// Swaps reversed corners. NaN stays in its position.
  POLYOP_HD static void InOrder(float* corners) {
    for (int i = 0; i < 2; ++i) {
      if (!(corners[i] > corners[i + 2])) continue;
      const float low = corners[i + 2];
      corners[i + 2] = corners[i];
      corners[i] = low;
    }
  }

 private:
  // Computed in fp64, so that all devices round alike.
  POLYOP_HD static float Exp(float x) { return static_cast<float>(exp(static_cast<double>(x))); }
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// The overlap rule of rotated boxes on the GPU; the trigonometry of a box is computed once.
#pragma once

#include "kernels/cuda/cuda.h"
#include "ops/boxes/rotated_boxes.h"

namespace polyop {

/// Prepared boxes, compared by index.
struct RotatedOverlaps {
  const RotatedBox* boxes;
  RotatedOverlapRule rule;

  /// Prepares the boxes box_of(0 … count - 1) in scratch memory.
  template <class BoxOf>
  static Status Prepare(const CudaContext& cuda, int64_t count, const BoxOf& box_of, const RotatedOverlapRule& rule,
                        RotatedOverlaps* overlaps) {
    RotatedBox* const boxes = cuda.Allocate<RotatedBox>(count);
    *overlaps = {boxes, rule};
    return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { boxes[i] = box_of(i); });
  }
  /// Prepares rows (cx, cy, width, height, angle).
  static Status Prepare(const CudaContext& cuda, const float* rows, int64_t count, float threshold,
                        RotatedOverlaps* overlaps) {
    return Prepare(
        cuda, count, [=] POLYOP_DEVICE(int64_t i) { return RotatedBox::Of(rows + 5 * i); }, {threshold}, overlaps);
  }

  POLYOP_HD bool operator()(int64_t a, int64_t b) const { return rule.Overlaps(boxes[a], boxes[b]); }
};

}  // namespace polyop

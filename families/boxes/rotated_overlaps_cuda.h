// The overlap rule of rotated boxes on the GPU: what every pair needs of a box is found once.
#pragma once

#include "families/boxes/rotated_boxes.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// Boxes by number, ready to be compared.
struct RotatedOverlaps {
  const RotatedBox* boxes;
  double threshold;

  /// Prepares `count` rows (cx, cy, width, height, angle) in scratch memory.
  static Status Prepare(const CudaContext& cuda, const float* rows, int64_t count, float threshold,
                        RotatedOverlaps* overlaps) {
    RotatedBox* const boxes = cuda.Allocate<RotatedBox>(count);
    *overlaps = {boxes, threshold};
    return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { boxes[i] = RotatedBox::Of(rows + 5 * i); });
  }

  POLYOP_HD bool operator()(int64_t a, int64_t b) const {
    const RotatedBox &p = boxes[a], &q = boxes[b];
    // Most pairs are apart: the circles around them do not touch.
    const double dx = p.x - q.x, dy = p.y - q.y;
    const double reach = std::sqrt(p.half_width * p.half_width + p.half_height * p.half_height) +
                         std::sqrt(q.half_width * q.half_width + q.half_height * q.half_height);
    if (dx * dx + dy * dy > reach * reach * (1 + 1e-9)) return false;
    return OverlapsMore(p, q, threshold);
  }
};

}  // namespace polyop

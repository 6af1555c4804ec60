// SPDX-License-Identifier: Apache-2.0
// The pillar that each cell of the canvas shows, on the GPU.
#pragma once

#include "core/tensor.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/last_items.h"

namespace polyop {

/// Pillars [groups, of_group] of one canvas [images, channels, height, width]. Without `num`, the number of used
/// pillars of each group, their coordinates contain the image; else the group is the image.
template <class I>
struct PillarsCuda {
  const I* coords;
  const I* num;
  int64_t pillars;
  Divider by_group;
  int64_t images, height, width;

  static PillarsCuda Of(const I* coords, const I* num, int64_t of_group, int64_t pillars, const Shape& canvas) {
    return {coords, num, pillars, Divider(of_group), canvas[0], canvas[2], canvas[3]};
  }
  /// Returns the image and cell of a pillar as an index, or -1 if it is not used or outside of the canvas. A num out of
  /// range is clamped to the number of pillars.
  POLYOP_HD int64_t CellOf(int64_t p) const {
    int64_t rank;
    const int64_t group = by_group.Split(p, &rank);
    if (num != nullptr && rank >= num[group]) return -1;
    const I* const row = coords + 4 * p;
    const int64_t image = num == nullptr ? int64_t{row[0]} : group, y = row[2], x = row[3];
    const bool inside = image >= 0 && image < images && y >= 0 && y < height && x >= 0 && x < width;
    return inside ? (image * height + y) * width + x : -1;
  }
};

/// Finds the last pillar of each cell, or -1.
template <class I>
Status FindPillarOwners(const CudaContext& cuda, const PillarsCuda<I>& all, const int64_t** owners) {
  return FindLastItems(
      cuda, all.pillars, all.images * all.height * all.width, [=] POLYOP_DEVICE(int64_t p) { return all.CellOf(p); },
      owners);
}

}  // namespace polyop

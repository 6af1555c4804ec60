// SPDX-License-Identifier: Apache-2.0
// The positions of pillars on the canvas, on the CPU.
#pragma once

#include "ops/bev/pillar_scatter/pillar_scatter_values.h"

namespace polyop {

/// Row `row` of the features belongs to cell `cell` of an image.
struct PlacedPillar {
  int64_t row, cell;
};

/// Calls put(image, pillar) for the pillars that are used, among `images` times `count` pillars. Without `num`, the
/// coordinates contain the image of a pillar.
template <class I, class Put>
Status ForEachPillar(const I* coords, int64_t images, int64_t count, const I* num, const Shape& canvas,
                     const Put& put) {
  for (int64_t n = 0; n < images; ++n) {
    const int64_t used = num == nullptr ? count : int64_t{num[n]};
    POLYOP_RETURN_IF_ERROR(CheckUsed(used, count));
    for (int64_t p = n * count; p < n * count + used; ++p) {
      const I* const row = coords + 4 * p;
      const int64_t image = num == nullptr ? int64_t{row[0]} : n, y = row[2], x = row[3];
      POLYOP_RETURN_IF_ERROR(CheckPosition(p, image, y, x, canvas));
      put(image, PlacedPillar{p, y * canvas[3] + x});
    }
  }
  return Status::Ok();
}

}  // namespace polyop

// A check of positions, shared by the CPU kernel and the reference.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// The dimensions of 'bev' that the components (row, column, layer, image) of 'geom_feats' index.
inline constexpr int kPositionDimensions[] = {2, 3, 1, 0};

/// Checks `position`, row number `row` of 'geom_feats'.
template <class I>
Status CheckPosition(int64_t row, const I* position, const Shape& bev) {
  for (int k = 0; k < 4; ++k) {
    const int64_t at = position[k], extent = bev[kPositionDimensions[k]];
    if (at >= 0 && at < extent) continue;
    return InvalidArgument("'geom_feats'[", row, ", ", k, "]: expected a value in [0, ", extent, "), got ", at);
  }
  return Status::Ok();
}

}  // namespace polyop

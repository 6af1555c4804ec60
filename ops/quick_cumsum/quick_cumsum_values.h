// What the values of places must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Dimensions of 'bev' that a row of 'geom_feats' names: (row, column, layer, picture).
inline constexpr int kPlaceDimensions[] = {2, 3, 1, 0};

/// The place of the point `row`, whose row of 'geom_feats' is `place`.
template <class I>
Status CheckPlace(int64_t row, const I* place, const Shape& bev) {
  for (int k = 0; k < 4; ++k) {
    const int64_t at = place[k], extent = bev[kPlaceDimensions[k]];
    if (at >= 0 && at < extent) continue;
    return InvalidArgument("'geom_feats'[", row, ", ", k, "] is ", at, ", wanted a value in [0, ", extent, ")");
  }
  return Status::Ok();
}

}  // namespace polyop

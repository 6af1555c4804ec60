// What the places of a filter's entries must be.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// indices [A, H, W, R] are in [1, A * H * W].
template <class I>
Status CheckPlaces(const Tensor<const I, 4>& indices) {
  const int64_t entries = indices.dim(0) * indices.dim(1) * indices.dim(2);
  for (int64_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 1 && indices[i] <= entries) continue;
    return InvalidArgument("'indices': element ", i, " is ", int64_t{indices[i]}, ", wanted a place in [1, ", entries,
                           "], counted from 1");
  }
  return Status::Ok();
}

}  // namespace polyop

// The check of `indices` that all kernels share.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Returns an error unless every element of indices [A, H, W, R] is in [1, A * H * W].
template <class I>
Status CheckPositions(const Tensor<const I, 4>& indices) {
  const int64_t entries = indices.dim(0) * indices.dim(1) * indices.dim(2);
  for (int64_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 1 && indices[i] <= entries) continue;
    const int64_t r = i % indices.dim(3), e = i / indices.dim(3), row = e / indices.dim(2);
    return InvalidArgument("'indices'[", row / indices.dim(1), ", ", row % indices.dim(1), ", ", e % indices.dim(2),
                           ", ", r, "]: expected an index in [1, ", entries, "], got ", int64_t{indices[i]});
  }
  return Status::Ok();
}

}  // namespace polyop

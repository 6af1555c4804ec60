// SPDX-License-Identifier: Apache-2.0
// The check and the meaning of `indices`, shared by kernels.
#pragma once

#include <algorithm>

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

/// Sets sources[r * entries + position] to the entry that rotation r copies to the position, or to -1 if there is none.
/// `sources` has as many elements as `indices`. Requires: the indices are checked.
template <class I>
void FindSources(const Tensor<const I, 4>& indices, int64_t* sources) {
  if (indices.size() == 0) return;
  const int64_t rotations = indices.dim(3), entries = indices.size() / rotations;
  std::fill_n(sources, indices.size(), -1);
  for (int64_t i = 0; i < indices.size(); ++i) sources[i % rotations * entries + indices[i] - 1] = i / rotations;
}

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// The dimension along which an operator scans a tensor.
#pragma once

#include <algorithm>

#include "core/tensor.h"

namespace polyop {

/// The number of elements before, along and after the scanned dimension. A scalar has dimension 0, as in PyTorch.
struct ScanExtents {
  int64_t outer = 1, length = 1, inner = 1;

  /// A negative dimension counts from the last one.
  static ScanExtents Of(int64_t dim, const Shape& input) {
    ScanExtents extents;
    if (dim < 0) dim += std::max(input.rank(), 1);
    for (int d = 0; d < input.rank(); ++d) {
      (d < dim ? extents.outer : d > dim ? extents.inner : extents.length) *= input[d];
    }
    return extents;
  }
};

/// Checks the attribute of this name, which is a dimension of `input`.
inline Status CheckScanDim(const char* attribute, int64_t dim, const Shape& input) {
  const int64_t rank = std::max(input.rank(), 1);
  if (dim >= -rank && dim < rank) return Status::Ok();
  return InvalidArgument("attribute '", attribute, "': expected a value in [", -rank, ", ", rank,
                         ") for 'input' of shape ", ToString(input), ", got ", dim);
}

}  // namespace polyop

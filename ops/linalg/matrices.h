// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/shape_eval.h"

namespace polyop::linalg {

/// Returns the number of matrices in a tensor: the product of the dimensions before the last two.
inline int64_t CountMatrices(const Shape& shape) {
  int64_t count = 1;
  for (int d = 0; d + 2 < shape.rank(); ++d) count *= shape[d];
  return count;
}

}  // namespace polyop::linalg

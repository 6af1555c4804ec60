// SPDX-License-Identifier: Apache-2.0
// The pixels where a mask is positive, for CPU kernels.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"

namespace polyop {

/// Lists the pixels where the mask is positive, in ascending order, and returns their number. Requires: `listed` has
/// space for `pixels` integers.
template <class M>
int64_t ListMasked(const M* mask, int64_t pixels, int64_t* listed) {
  int64_t count = 0;
  for (int64_t p = 0; p < pixels; ++p) {
    listed[count] = p;
    if constexpr (std::is_same_v<M, bool>) {
      count += mask[p];
    } else {
      count += ToFloat(mask[p]) > 0;
    }
  }
  return count;
}

}  // namespace polyop

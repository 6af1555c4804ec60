// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace polyop {

/// Strides of a mask that broadcasts to the weights [B, L, S]; 0 in broadcast dimensions.
struct MaskStrides {
  int64_t batch = 0, row = 0, column = 0;

  static MaskStrides Of(const Shape& mask) {
    MaskStrides strides;
    int64_t* const to[3] = {&strides.batch, &strides.row, &strides.column};
    int64_t stride = 1;
    for (int i = 1; i <= mask.rank(); ++i) {
      const int64_t extent = mask[mask.rank() - i];
      *to[3 - i] = extent == 1 ? 0 : stride;
      stride *= extent;
    }
    return strides;
  }
};

}  // namespace polyop

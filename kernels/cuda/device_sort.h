// SPDX-License-Identifier: Apache-2.0
// Sorting on the GPU.
#pragma once

#include <cstdint>

#include "core/cuda_context.h"

namespace polyop {

/// Pairs in scratch memory. A kernel fills them before Sort.
struct SortPairs {
  uint64_t* keys;
  int32_t* values;
  int64_t count;

  static SortPairs Allocate(const CudaContext& cuda, int64_t count) {
    return {cuda.Allocate<uint64_t>(count), cuda.Allocate<int32_t>(count), count};
  }
  /// Sorts stably by the lowest `bits` of the keys, in ascending order. `keys` and `values` point to other memory
  /// afterwards.
  Status Sort(const CudaContext& cuda, int bits);
};

}  // namespace polyop

// Sorting on the GPU.
#pragma once

#include <cstdint>

#include "core/cuda_context.h"

namespace polyop {

/// Pairs in scratch memory, which a kernel fills before they are sorted.
struct SortPairs {
  uint64_t* keys;
  int32_t* values;
  int64_t count;

  static SortPairs Allocate(const CudaContext& cuda, int64_t count) {
    return {cuda.Allocate<uint64_t>(count), cuda.Allocate<int32_t>(count), count};
  }
  /// Sorts by the lowest `bits` of the keys, least first and stably; afterwards `keys` and `values` lie elsewhere.
  Status Sort(const CudaContext& cuda, int bits);
};

}  // namespace polyop

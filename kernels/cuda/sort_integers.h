// Integers of a tensor sorted on the GPU, with their places.
#pragma once

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device_sort.h"

namespace polyop {

/// Keys that rise as the integers do; values are the integers' places, the lower one first where they are equal.
template <class I>
Status SortIntegers(const CudaContext& cuda, const I* x, int64_t count, SortPairs* sorted) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(I));
  *sorted = SortPairs::Allocate(cuda, count);
  uint64_t* const keys = sorted->keys;
  int32_t* const values = sorted->values;
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
    keys[i] = static_cast<uint64_t>(int64_t{x[i]}) ^ (uint64_t{1} << (kBits - 1));
    values[i] = static_cast<int32_t>(i);
  }));
  return sorted->Sort(cuda, kBits);
}

}  // namespace polyop

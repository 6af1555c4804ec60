// Sorts the integers of a tensor on the GPU, with their indices.
#pragma once

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device_sort.h"

namespace polyop {

/// Sorts `count` integers. The keys have the same order as the integers; the values are their indices, in ascending
/// order for equal integers.
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

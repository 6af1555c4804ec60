// The copies of ActiveRotatedFilter, on the GPU.
#pragma once

#include "core/tensor.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// Sets *sources, scratch memory, to the entry that is copied to each position of each rotation, the last one if there
/// are several, or -1: sources[rotation * entries + position]. An index that is out of range is skipped.
template <class I>
Status FindRotatedSources(const CudaContext& cuda, const Tensor<const I, 4>& indices, int64_t entries,
                          int64_t** sources) {
  const int64_t rotations = indices.dim(3);
  const I* const targets = indices.data();
  int64_t* const found = *sources = cuda.Allocate<int64_t>(rotations * entries);
  const Divider by_rotations(rotations);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, rotations * entries, [=] POLYOP_DEVICE(int64_t i) { found[i] = -1; }));
  return ForEach(cuda, rotations * entries, [=] POLYOP_DEVICE(int64_t i) {
    int64_t rotation;
    const int64_t entry = by_rotations.Split(i, &rotation), position = targets[i];
    if (position >= 1 && position <= entries) AtomicMax(found + rotation * entries + position - 1, entry);
  });
}

}  // namespace polyop

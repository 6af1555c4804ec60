// SPDX-License-Identifier: Apache-2.0
// The last of the items that write to the same target, which remains in a sequential loop.
#pragma once

#include "kernels/cuda/cuda.h"

namespace polyop {

/// Sets *last, scratch memory, to the greatest item in [0, count) of each target, or to -1. target(item) returns the
/// item's target; an item whose target is not in [0, targets) has none.
template <class Target>
Status FindLastItems(const CudaContext& cuda, int64_t count, int64_t targets, const Target& target,
                     const int64_t** last) {
  int64_t* const found = cuda.Allocate<int64_t>(targets);
  *last = found;
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, targets, [=] POLYOP_DEVICE(int64_t t) { found[t] = -1; }));
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t item) {
    const int64_t t = target(item);
    if (t >= 0 && t < targets) AtomicMax(found + t, item);
  });
}

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// Counts that many GPU threads add to. Unlike sums of floats, they do not depend on the order.
#pragma once

#include "kernels/cuda/cuda.h"

namespace polyop {

/// Adds 1 to memory that other threads add to.
POLYOP_DEVICE inline void AtomicIncrement(int64_t* at) {
#ifdef __CUDACC__
  atomicAdd(reinterpret_cast<unsigned long long*>(at), 1ull);
#else
  ++*at;
#endif
}

}  // namespace polyop

// Reductions within a block.
#pragma once

#include "kernels/cuda/cuda.h"

namespace polyop {

/// Sets values[0] to the sum of values[0, count) in an order that depends only on `count`. Requires: `count` is a power
/// of two, at most twice the number of threads; `values` is shared memory; `add(a, b)` is associative.
template <class T, class Add>
POLYOP_DEVICE void ReduceBlock(Block& block, T* values, int count, const Add& add) {
  for (int half = count / 2; half > 0; half /= 2) {
    block.ForThreads([&](int t) {
      if (t < half) values[t] = add(values[t], values[t + half]);
    });
  }
}

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
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

/// Calls store(i, value(i, 0) + … + value(i, terms - 1)) for each i in [0, count), with one block per sum and in an
/// order that depends only on `terms`.
template <class Sum = float, class Value, class Store>
Status SumByBlocks(const CudaContext& cuda, int64_t count, int64_t terms, const Value& value, const Store& store) {
  constexpr int64_t kShared = kThreadsPerBlock * static_cast<int64_t>(sizeof(Sum));
  return ForBlocks(cuda, count, kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    Sum* const sums = block.Shared<Sum>(kThreadsPerBlock);
    block.ForThreads([&](int t) {
      Sum sum{};
      for (int64_t j = t; j < terms; j += kThreadsPerBlock) sum = sum + value(block.index, j);
      sums[t] = sum;
    });
    ReduceBlock(block, sums, kThreadsPerBlock, [] POLYOP_DEVICE(const Sum& a, const Sum& b) { return a + b; });
    block.ForThreads([&](int t) {
      if (t == 0) store(block.index, sums[0]);
    });
  });
}

}  // namespace polyop

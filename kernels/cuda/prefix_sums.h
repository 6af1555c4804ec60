// Exclusive sums of short sequences on the GPU.
#pragma once

#include "kernels/cuda/cuda.h"

namespace polyop {

/// before[i] = value(0) + … + value(i - 1) for i in [0, count), and *total = the sum of all. One block: for the few
/// words of bit masks.
template <class Value>
Status PrefixSums(const CudaContext& cuda, int64_t count, const Value& value, int64_t* before, int64_t* total) {
  constexpr int kThreads = 1024;
  return ForBlocks<kThreads>(cuda, 1, kThreads, (kThreads + 1) * 8 + 16, [=] POLYOP_DEVICE(Block& block) {
    int64_t* const sums = block.Shared<int64_t>(kThreads + 1);
    // Every thread adds up a run of its own; the runs' sums are added by one thread.
    const int64_t run = (count + kThreads - 1) / kThreads;
    block.ForThreads([&](int t) {
      int64_t sum = 0;
      for (int64_t i = t * run; i < (t + 1) * run && i < count; ++i) sum += value(i);
      sums[t] = sum;
    });
    block.ForThreads([&](int t) {
      if (t != 0) return;
      int64_t sum = 0;
      for (int i = 0; i < kThreads; ++i) {
        const int64_t mine = sums[i];
        sums[i] = sum;
        sum += mine;
      }
      if (total != nullptr) *total = sum;
    });
    block.ForThreads([&](int t) {
      int64_t sum = sums[t];
      for (int64_t i = t * run; i < (t + 1) * run && i < count; ++i) {
        before[i] = sum;
        sum += value(i);
      }
    });
  });
}

}  // namespace polyop

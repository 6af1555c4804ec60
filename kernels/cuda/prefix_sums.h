// SPDX-License-Identifier: Apache-2.0
// Exclusive prefix sums on the GPU.
#pragma once

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// Sets before[i] to value(0) + … + value(i - 1) for i in [0, count), and *total to the sum of all. Uses one block, so
/// it is for short sequences such as the words of bit masks.
template <class Value>
Status PrefixSums(const CudaContext& cuda, int64_t count, const Value& value, int64_t* before, int64_t* total) {
  constexpr int kThreads = 1024;
  return ForBlocks<kThreads>(cuda, 1, kThreads, (kThreads + 1) * 8 + 16, [=] POLYOP_DEVICE(Block& block) {
    int64_t* const sums = block.Shared<int64_t>(kThreads + 1);
    // Every thread sums a run; one thread adds up the runs' sums.
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

/// Like PrefixSums, but for long sequences, which are divided into tiles, one block each. Sets before[count] to the sum
/// of all.
template <class Value>
Status TiledPrefixSums(const CudaContext& cuda, int64_t count, const Value& value, int64_t* before) {
  constexpr int kTile = 4 * kThreadsPerBlock;
  const int64_t tiles = BlocksFor(count, kTile);
  int64_t* const sums = cuda.Allocate<int64_t>(tiles);
  int64_t* const before_tile = cuda.Allocate<int64_t>(tiles);
  POLYOP_RETURN_IF_ERROR(
      ForBlocks(cuda, tiles, kThreadsPerBlock, 8 * kThreadsPerBlock, [=] POLYOP_DEVICE(Block& block) {
        int64_t* const mine = block.Shared<int64_t>(kThreadsPerBlock);
        block.ForThreads([&](int t) {
          int64_t sum = 0;
          for (int64_t i = block.index * kTile + t; i < count && i < (block.index + 1) * kTile; i += kThreadsPerBlock) {
            sum += value(i);
          }
          mine[t] = sum;
        });
        ReduceBlock(block, mine, kThreadsPerBlock, [] POLYOP_DEVICE(int64_t a, int64_t b) { return a + b; });
        block.ForThreads([&](int t) {
          if (t == 0) sums[block.index] = mine[0];
        });
      }));
  POLYOP_RETURN_IF_ERROR(
      PrefixSums(cuda, tiles, [=] POLYOP_DEVICE(int64_t i) { return sums[i]; }, before_tile, before + count));
  return ForBlocks(cuda, tiles, kThreadsPerBlock, 16 * kThreadsPerBlock, [=] POLYOP_DEVICE(Block& block) {
    int64_t* from = block.Shared<int64_t>(kThreadsPerBlock);
    int64_t* to = block.Shared<int64_t>(kThreadsPerBlock);
    const int64_t begin = block.index * kTile;
    block.ForThreads([&](int t) {  // every thread sums neighbouring elements
      int64_t sum = 0;
      for (int64_t i = begin + 4 * t; i < count && i < begin + 4 * t + 4; ++i) sum += value(i);
      from[t] = sum;
    });
    for (int step = 1; step < kThreadsPerBlock; step *= 2) {
      block.ForThreads([&](int t) { to[t] = t >= step ? from[t - step] + from[t] : from[t]; });
      int64_t* const swap = from;
      from = to;
      to = swap;
    }
    block.ForThreads([&](int t) {
      int64_t sum = before_tile[block.index] + (t == 0 ? 0 : from[t - 1]);
      for (int64_t i = begin + 4 * t; i < count && i < begin + 4 * t + 4; ++i) {
        before[i] = sum;
        sum += value(i);
      }
    });
  });
}

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// Gathers columns of each channel by index, on the GPU.
#pragma once

#include "core/words.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// Returns the bits of NaN of a floating type as a word.
template <class Word, class T>
constexpr Word NanWord() {
  if constexpr (std::is_same_v<T, float>) {
    return 0x7FC00000u;
  } else {
    return std::is_same_v<T, Half> ? 0x7E00u : 0x7FC0u;
  }
}

namespace gather_columns_internal {

// A block copies a row of features to shared memory and gathers some of its picks there: random accesses conflict for a
// few of 32 banks, but are of nearly as many lines of the cache. 8x64 rows of 4,096 columns and 32,768 picks are 77 MB,
// 0.02 ms of an H200.
template <class Word, class I>
Status GatherInSharedMemory(const CudaContext& cuda, const Word* features, const I* idx, int64_t channels,
                            int64_t columns, int64_t picks, Word missing, Word* gathered, int64_t rows) {
  constexpr int64_t kPicks = 8192;  // of a block
  constexpr int kAhead = 4;         // indices that a thread loads before it uses the first
  const Divider by_parts(BlocksFor(picks, kPicks)), by_channels(channels);
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(Word)) + 16;
  return ForBlocks(cuda, rows * BlocksFor(picks, kPicks), kThreadsPerBlock, bytes, [=] POLYOP_DEVICE(Block& block) {
    Word* const row_of = block.Shared<Word>(static_cast<int>(columns));
    int64_t part;
    const int64_t row = by_parts.Split(block.index, &part);
    block.ForThreads([&](int t) {
      for (int64_t column = t; column < columns; column += kThreadsPerBlock) {
        row_of[column] = features[row * columns + column];
      }
    });
    const I* const index = idx + by_channels.Quotient(row) * picks;
    Word* const to = gathered + row * picks;
    const int64_t end = (part + 1) * kPicks < picks ? (part + 1) * kPicks : picks;
    block.ForThreads([&](int t) {
      for (int64_t first = part * kPicks + t; first < end; first += kAhead * kThreadsPerBlock) {
        int64_t column[kAhead];
        for (int k = 0; k < kAhead; ++k) {
          const int64_t pick = first + k * kThreadsPerBlock;
          column[k] = pick < end ? int64_t{index[pick]} : -1;
        }
        for (int k = 0; k < kAhead; ++k) {
          const int64_t pick = first + k * kThreadsPerBlock;
          if (pick < end) to[pick] = column[k] >= 0 && column[k] < columns ? row_of[column[k]] : missing;
        }
      }
    });
  });
}

}  // namespace gather_columns_internal

/// Computes gathered[b, c, j] = features[b, c, idx[b, j]], or `missing` for an index out of range.
template <class Word, class I>
Status GatherColumns(const CudaContext& cuda, const Word* features, const I* idx, int64_t channels, int64_t columns,
                     int64_t picks, Word missing, Word* gathered, int64_t size) {
  const bool fits = columns > 0 && columns < kMaxSharedBytes / static_cast<int64_t>(sizeof(Word)) - 16;
  if (fits && picks >= columns) {
    return gather_columns_internal::GatherInSharedMemory(cuda, features, idx, channels, columns, picks, missing,
                                                         gathered, size / picks);
  }
  const Divider by_picks(picks), by_channels(channels);
  return ForEach(cuda, size, [=] POLYOP_DEVICE(int64_t i) {
    int64_t pick;
    const int64_t row = by_picks.Split(i, &pick);
    const int64_t column = idx[by_channels.Quotient(row) * picks + pick];
    gathered[i] = column >= 0 && column < columns ? features[row * columns + column] : missing;
  });
}

}  // namespace polyop

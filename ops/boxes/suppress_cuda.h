// SPDX-License-Identifier: Apache-2.0
// Greedy suppression on the GPU: sets of boxes are sorted by score, bit masks hold which box overlaps which, and one
// block per set walks through the masks. Nothing is copied to the host.
#pragma once

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device_sort.h"
#include "kernels/cuda/prefix_sums.h"
#include "ops/boxes/score_order.h"

namespace polyop {

/// Selects the boxes whose score is above a threshold, which NaN never is, or all boxes.
struct BoxesAbove {
  float threshold;
  bool all = false;
  POLYOP_HD bool operator()(float score, int64_t) const { return all || score > threshold; }
};

/// Several sets of the same size, each in order of descending score.
struct SortedSets {
  int64_t sets = 0, size = 0;
  int32_t* order = nullptr;  // [sets, size]: indices of the boxes in their set
  int32_t* count = nullptr;  // [sets]: number of selected boxes, which come first

  POLYOP_HD int64_t words() const { return (size + 63) / 64; }

  /// Sorts by score(set, box), NaN last, and selects the boxes for which takes_part(score, box), at most `max_boxes`
  /// per set.
  template <class Score, class TakesPart>
  static Status Sort(const CudaContext& cuda, int64_t sets, int64_t size, const Score& score,
                     const TakesPart& takes_part, int64_t max_boxes, SortedSets* sorted) {
    if (size > 0 && sets > INT32_MAX / size) {
      return InvalidArgument("'scores': expected fewer than 2^31 boxes, got ", sets, " sets of ", size);
    }
    SortPairs pairs = SortPairs::Allocate(cuda, sets * size);
    const Divider by_size(size);
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, sets * size, [=] POLYOP_DEVICE(int64_t i) {
      int64_t box;
      const int64_t set = by_size.Split(i, &box);
      const float value = score(set, box);
      const uint64_t left_out = takes_part(value, box) ? 0 : 1;
      pairs.keys[i] = static_cast<uint64_t>(set) << 33 | left_out << 32 | DescendingKey(value);
      pairs.values[i] = static_cast<int32_t>(box);
    }));
    int bits = 33;
    while ((int64_t{1} << (bits - 33)) < sets) ++bits;
    POLYOP_RETURN_IF_ERROR(pairs.Sort(cuda, bits));
    *sorted = {sets, size, pairs.values, cuda.Allocate<int32_t>(sets)};
    int32_t* const count = sorted->count;
    const int64_t limit = std::min(max_boxes, size);
    return ForEach(cuda, sets, [=] POLYOP_DEVICE(int64_t set) {  // bisects for the first box that is not selected
      int64_t begin = 0, end = size;
      while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        const bool in = (pairs.keys[set * size + middle] >> 32 & 1) == 0;
        (in ? begin : end) = in ? middle + 1 : middle;
      }
      count[set] = static_cast<int32_t>(begin < limit ? begin : limit);
    });
  }
};

/// Bit `rank` of a set's words is set if the box of that rank is kept.
struct KeptBits {
  uint64_t* words = nullptr;  // [sets, words per set]
};

/// Keeps at most `max_kept` boxes per set. overlaps(set, a, b) returns whether a kept box a suppresses box b.
template <class Overlaps>
Status Suppress(const CudaContext& cuda, const SortedSets& sorted, int64_t max_kept, const Overlaps& overlaps,
                KeptBits* kept) {
  const int64_t words = sorted.words(), size = sorted.size;
  kept->words = cuda.Allocate<uint64_t>(sorted.sets * words);
  uint64_t* const removed = cuda.Allocate<uint64_t>(sorted.sets * words);
  int32_t* const num_kept = cuda.Allocate<int32_t>(sorted.sets);
  // Computes the masks of some rows at a time, so that many boxes need little memory. The memory never shrinks as the
  // number of boxes grows.
  constexpr int64_t kMaskWords = 1 << 20;
  const int64_t word_rows = std::max<int64_t>(sorted.sets * words * 64, 1);  // mask words of the 64 rows of one word
  const int64_t mask_words = std::min(word_rows * words, std::max(kMaskWords, word_rows));
  const int64_t row_words = std::max<int64_t>(mask_words / word_rows, 1);
  uint64_t* const masks = cuda.Allocate<uint64_t>(mask_words);
  uint64_t* const keep = kept->words;
  POLYOP_RETURN_IF_ERROR(
      ForEach(cuda, sorted.sets * words, [=] POLYOP_DEVICE(int64_t i) { removed[i] = keep[i] = 0; }));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, sorted.sets, [=] POLYOP_DEVICE(int64_t i) { num_kept[i] = 0; }));
  const Divider by_words(words), by_rows(row_words * 64);
  for (int64_t first = 0; first < words; first += row_words) {
    // masks[set][row][word]: the boxes with ranks in that word that the row's box would suppress.
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, sorted.sets * row_words * 64 * words, [=] POLYOP_DEVICE(int64_t i) {
      int64_t word, row;
      const int64_t set = by_rows.Split(by_words.Split(i, &word), &row), rank = first * 64 + row;
      const int64_t count = sorted.count[set];
      const int32_t* const order = sorted.order + set * size;
      uint64_t mask = 0;
      const bool suppressed = rank >= count || (removed[set * words + rank / 64] >> (rank % 64) & 1) != 0;
      for (int64_t bit = 0; bit < 64 && !suppressed; ++bit) {
        const int64_t other = word * 64 + bit;
        if (other > rank && other < count && overlaps(set, order[rank], order[other])) mask |= uint64_t{1} << bit;
      }
      masks[i] = mask;
    }));
    const int64_t end = std::min(words, first + row_words);
    POLYOP_RETURN_IF_ERROR(ForBlocks(cuda, sorted.sets, kThreadsPerBlock, 64 * 8 + 16, [=] POLYOP_DEVICE(Block& block) {
      uint64_t* const diagonal = block.Shared<uint64_t>(64);
      uint64_t* const kept_bits = block.Shared<uint64_t>(1);
      const int64_t set = block.index, count = sorted.count[set];
      const uint64_t* const rows = masks + set * row_words * 64 * words;
      for (int64_t word = first; word < end; ++word) {
        const int64_t row = (word - first) * 64;
        block.ForThreads([&](int t) {
          if (t < 64) diagonal[t] = rows[(row + t) * words + word];
        });
        block.ForThreads([&](int t) {  // within the word, boxes are decided one after another
          if (t != 0) return;
          uint64_t suppressed = removed[set * words + word];
          int64_t number = num_kept[set];
          *kept_bits = 0;
          for (int64_t bit = 0; bit < 64 && word * 64 + bit < count && number < max_kept; ++bit) {
            if (suppressed >> bit & 1) continue;
            *kept_bits |= uint64_t{1} << bit;
            suppressed |= diagonal[bit];
            ++number;
          }
          num_kept[set] = static_cast<int32_t>(number);
          keep[set * words + word] = *kept_bits;
        });
        block.ForThreads([&](int t) {  // later words are updated in parallel
          for (int64_t later = word + 1 + t; later < words; later += kThreadsPerBlock) {
            uint64_t suppressed = removed[set * words + later];
            for (int64_t bit = 0; bit < 64; ++bit) {
              if (*kept_bits >> bit & 1) suppressed |= rows[(row + bit) * words + later];
            }
            removed[set * words + later] = suppressed;
          }
        });
      }
    }));
  }
  return Status::Ok();
}

/// Calls emit(position, set, box) for every kept box, with positions 0, 1, … in order of set, then of rank. Writes
/// their number to `*total`, which is in device memory.
template <class Emit>
Status EmitKept(const CudaContext& cuda, const SortedSets& sorted, const KeptBits& kept, int64_t* total,
                const Emit& emit) {
  const int64_t words = sorted.words(), all = sorted.sets * words;
  const uint64_t* const bits = kept.words;
  int64_t* const before = cuda.Allocate<int64_t>(all);
  POLYOP_RETURN_IF_ERROR(PrefixSums(
      cuda, all, [=] POLYOP_DEVICE(int64_t i) { return static_cast<int64_t>(PopCount(bits[i])); }, before, total));
  const Divider by_size(sorted.size);
  return ForEach(cuda, sorted.sets * sorted.size, [=] POLYOP_DEVICE(int64_t i) {
    int64_t rank;
    const int64_t set = by_size.Split(i, &rank), word = set * words + rank / 64;
    if ((bits[word] >> (rank % 64) & 1) == 0) return;
    const uint64_t earlier = bits[word] & ((uint64_t{1} << (rank % 64)) - 1);
    emit(before[word] + PopCount(earlier), set, int64_t{sorted.order[i]});
  });
}

}  // namespace polyop

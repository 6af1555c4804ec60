// SPDX-License-Identifier: Apache-2.0
// Radix sort of 64-bit keys.
#pragma once

#include <cstdint>

#include "core/context.h"
#include "core/status.h"

namespace polyop {

/// Pairs of a key and a value in scratch memory. Fill keys() and values(), then call Sort.
class RadixSort {
 public:
  /// Allocates `capacity` pairs.
  RadixSort(const Context& context, int64_t capacity);
  /// Returns false if memory was exhausted.
  explicit operator bool() const { return keys_ && values_ && other_keys_ && other_values_; }

  uint64_t* keys() const { return from_keys_; }
  int32_t* values() const { return from_values_; }

  /// Sorts the first `count` pairs stably by their keys, in ascending order. Skips bits that are equal in all keys.
  /// Afterwards, keys() and values() return other pointers.
  Status Sort(int64_t count);

  /// Sorts the indices below `count`, which become the values, by key(i).
  template <class Key>
  Status SortIndices(int64_t count, const Key& key) {
    context_.ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        from_keys_[i] = key(i);
        from_values_[i] = static_cast<int32_t>(i);
      }
    });
    return Sort(count);
  }

 private:
  static constexpr int64_t kGrain = 1 << 14;  // minimum number of pairs per task, so that each bucket gets many

  void Pass(int64_t count, int shift, uint64_t mask, int32_t* positions);

  const Context& context_;
  Scratch<uint64_t> keys_, other_keys_;
  Scratch<int32_t> values_, other_values_;
  uint64_t *from_keys_, *to_keys_;
  int32_t *from_values_, *to_values_;
};

}  // namespace polyop

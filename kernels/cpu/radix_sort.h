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

 private:
  void Pass(int64_t count, int shift, uint64_t mask, int32_t* positions);

  const Context& context_;
  Scratch<uint64_t> keys_, other_keys_;
  Scratch<int32_t> values_, other_values_;
  uint64_t *from_keys_, *to_keys_;
  int32_t *from_values_, *to_values_;
};

/// Maps an integer to a key with the same order.
inline uint64_t SortableKey(int64_t x) { return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63); }
inline int64_t FromSortableKey(uint64_t key) { return static_cast<int64_t>(key ^ (uint64_t{1} << 63)); }

}  // namespace polyop

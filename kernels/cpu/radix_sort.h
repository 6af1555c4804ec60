// Sorting of integers that takes the same time whatever they are.
#pragma once

#include <cstdint>

#include "core/context.h"
#include "core/status.h"

namespace polyop {

/// Pairs of a key and a value in scratch memory, which are filled in before they are sorted.
class RadixSort {
 public:
  /// Room for `capacity` pairs.
  RadixSort(const Context& context, int64_t capacity);
  /// False if there was no memory.
  explicit operator bool() const { return keys_ && values_ && other_keys_ && other_values_; }

  uint64_t* keys() const { return from_keys_; }
  int32_t* values() const { return from_values_; }

  /// Sorts the first `count` pairs by their keys, least first; equal keys stay in their order. Only bits in which keys
  /// differ cost time. Afterwards keys() and values() lie elsewhere.
  Status Sort(int64_t count);

 private:
  void Pass(int64_t count, int shift, uint64_t mask, int32_t* places);

  const Context& context_;
  Scratch<uint64_t> keys_, other_keys_;
  Scratch<int32_t> values_, other_values_;
  uint64_t *from_keys_, *to_keys_;
  int32_t *from_values_, *to_values_;
};

/// Rises as the integer does.
inline uint64_t SortableKey(int64_t x) { return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63); }
inline int64_t OfSortableKey(uint64_t key) { return static_cast<int64_t>(key ^ (uint64_t{1} << 63)); }

}  // namespace polyop

// The order in which suppression visits boxes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "core/host_device.h"
#include "core/status.h"

namespace polyop {

/// Rises where the score falls; all NaN are alike, and the highest.
POLYOP_HD inline uint32_t FallingKey(float score) {
  if (score != score) return 0xFFFFFFFFu;
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 is 0
  return bits >> 31 ? bits : ~bits & 0x7FFFFFFFu;
}

/// As FallingKey, and with equal scores it rises where the index does. The index is the lower 32 bits.
inline uint64_t FallingKeyOf(float score, int64_t index) {
  return static_cast<uint64_t>(FallingKey(score)) << 32 | static_cast<uint64_t>(index);
}

namespace score_order_internal {

// As they are compared. With a comparison of our own, clang's standard library sorts with a branch for each.
inline uint64_t* Unsigned(int64_t* keys) { return reinterpret_cast<uint64_t*>(keys); }

// Sorts keys, and leaves their indices in their place.
inline void SortKeys(int64_t* keys, int64_t count) {
  std::sort(Unsigned(keys), Unsigned(keys + count));
  for (int64_t i = 0; i < count; ++i) keys[i] &= 0xFFFFFFFF;
}

}  // namespace score_order_internal

/// Boxes that one call can order: their indices have 32 bits.
inline constexpr int64_t kMaxOrdered = int64_t{1} << 32;

/// Sorted by falling score, equal scores have the lower index first, and NaN comes last. A sequence of places is found
/// in two steps: their keys, unsorted, of all scores or of those above a threshold, which NaN is not; and then their
/// order, as far as it is needed.
inline int64_t ScoreKeys(const float* scores, int64_t count, int64_t* keys) {
  for (int64_t i = 0; i < count; ++i) keys[i] = static_cast<int64_t>(FallingKeyOf(scores[i], i));
  return count;
}
inline int64_t ScoreKeysAbove(const float* scores, int64_t count, float threshold, int64_t* keys) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    keys[found] = static_cast<int64_t>(FallingKeyOf(scores[i], i));
    found += scores[i] > threshold;
  }
  return found;
}
/// Makes the `first` best of the keys places, in their order; the rest stay keys.
inline void SortFirst(int64_t* keys, int64_t count, int64_t first) {
  using score_order_internal::Unsigned;
  if (first < count) std::nth_element(Unsigned(keys), Unsigned(keys + first), Unsigned(keys + count));
  score_order_internal::SortKeys(keys, first);
}

/// Fills `order` with the places of all scores, sorted.
inline void SortByFallingScore(const float* scores, std::span<int64_t> order) {
  const auto count = static_cast<int64_t>(order.size());
  SortFirst(order.data(), ScoreKeys(scores, count, order.data()), count);
}

/// Fills `order` with the places of the scores above `threshold`, sorted; returns how many they are. `order` has room
/// for `count`.
inline int64_t SortAbove(const float* scores, int64_t count, float threshold, int64_t* order) {
  const int64_t found = ScoreKeysAbove(scores, count, threshold, order);
  SortFirst(order, found, found);
  return found;
}

/// An error for more boxes than can be ordered.
inline Status CheckOrdered(int64_t boxes) {
  if (boxes < kMaxOrdered) return Status::Ok();
  return InvalidArgument("'boxes' has ", boxes, " boxes, wanted fewer than ", kMaxOrdered, ": indices have 32 bits");
}

}  // namespace polyop

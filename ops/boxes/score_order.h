// SPDX-License-Identifier: Apache-2.0
// The order in which suppression visits boxes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "core/host_device.h"
#include "core/status.h"

namespace polyop {

/// Returns a key that rises as the score falls. All NaN have the same, highest key.
POLYOP_HD inline uint32_t DescendingKey(float score) {
  if (score != score) return 0xFFFFFFFFu;
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 is 0
  return bits >> 31 ? bits : ~bits & 0x7FFFFFFFu;
}

/// Returns DescendingKey in the upper and the index in the lower 32 bits, so that ties are in order of index.
inline uint64_t DescendingKeyOf(float score, int64_t index) {
  return static_cast<uint64_t>(DescendingKey(score)) << 32 | static_cast<uint64_t>(index);
}

namespace score_order_internal {

// Keys compare as unsigned. With a custom comparison, clang's standard library would sort with branches.
inline uint64_t* Unsigned(int64_t* keys) { return reinterpret_cast<uint64_t*>(keys); }

// Sorts keys and replaces them by their indices.
inline void SortKeys(int64_t* keys, int64_t count) {
  std::sort(Unsigned(keys), Unsigned(keys + count));
  for (int64_t i = 0; i < count; ++i) keys[i] &= 0xFFFFFFFF;
}

}  // namespace score_order_internal

/// The number of boxes that one call can order, because indices have 32 bits.
inline constexpr int64_t kMaxOrdered = int64_t{1} << 32;

/// Writes the keys of all scores, unsorted, and returns their number. Keys order by descending score, ties by index,
/// NaN last; SortFirst sorts as many of them as are needed.
inline int64_t ScoreKeys(const float* scores, int64_t count, int64_t* keys) {
  for (int64_t i = 0; i < count; ++i) keys[i] = static_cast<int64_t>(DescendingKeyOf(scores[i], i));
  return count;
}
/// Like ScoreKeys, but only of the scores above `threshold`. `keys` has room for `count`.
inline int64_t ScoreKeysAbove(const float* scores, int64_t count, float threshold, int64_t* keys) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    keys[found] = static_cast<int64_t>(DescendingKeyOf(scores[i], i));
    found += scores[i] > threshold;
  }
  return found;
}
/// Replaces the `first` best of the keys by their indices, in order; the rest stay keys.
inline void SortFirst(int64_t* keys, int64_t count, int64_t first) {
  using score_order_internal::Unsigned;
  if (first < count) std::nth_element(Unsigned(keys), Unsigned(keys + first), Unsigned(keys + count));
  score_order_internal::SortKeys(keys, first);
}

/// Fills `order` with the indices of all scores, best first.
inline void SortByDescendingScore(const float* scores, std::span<int64_t> order) {
  const auto count = static_cast<int64_t>(order.size());
  SortFirst(order.data(), ScoreKeys(scores, count, order.data()), count);
}

/// Fills `order` with the indices of the scores above `threshold`, best first, and returns their number. `order` has
/// room for `count`.
inline int64_t SortAbove(const float* scores, int64_t count, float threshold, int64_t* order) {
  const int64_t found = ScoreKeysAbove(scores, count, threshold, order);
  SortFirst(order, found, found);
  return found;
}

/// Checks that the boxes can be ordered.
inline Status CheckOrdered(int64_t boxes) {
  if (boxes < kMaxOrdered) return Status::Ok();
  return InvalidArgument("'boxes': expected fewer than ", kMaxOrdered, " boxes, got ", boxes);
}

}  // namespace polyop

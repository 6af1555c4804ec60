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

namespace score_order_internal {

// As FallingKey, and with equal scores it rises where the index does. The index has 32 bits.
inline uint64_t Key(float score, int64_t index) {
  return static_cast<uint64_t>(FallingKey(score)) << 32 | static_cast<uint64_t>(index);
}

// Sorts keys, and leaves their indices in their place.
inline void SortKeys(int64_t* keys, int64_t count) {
  std::sort(keys, keys + count,
            [](int64_t a, int64_t b) { return static_cast<uint64_t>(a) < static_cast<uint64_t>(b); });
  for (int64_t i = 0; i < count; ++i) keys[i] &= 0xFFFFFFFF;
}

}  // namespace score_order_internal

/// Boxes that one call can order: their indices have 32 bits.
inline constexpr int64_t kMaxOrdered = int64_t{1} << 32;

/// Fills `order` with 0, 1, … sorted by falling score: equal scores keep the lower index first, NaN comes last.
inline void SortByFallingScore(const float* scores, std::span<int64_t> order) {
  const auto count = static_cast<int64_t>(order.size());
  for (int64_t i = 0; i < count; ++i)
    order[static_cast<size_t>(i)] = static_cast<int64_t>(score_order_internal::Key(scores[i], i));
  score_order_internal::SortKeys(order.data(), count);
}

/// Fills `order` with the places of the scores above `threshold`, sorted in the same way; returns how many they are.
/// NaN is not above anything. `order` has room for `count`.
inline int64_t SortAbove(const float* scores, int64_t count, float threshold, int64_t* order) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    order[found] = static_cast<int64_t>(score_order_internal::Key(scores[i], i));
    found += scores[i] > threshold;
  }
  score_order_internal::SortKeys(order, found);
  return found;
}

/// An error for more boxes than can be ordered.
inline Status CheckOrdered(int64_t boxes) {
  if (boxes < kMaxOrdered) return Status::Ok();
  return InvalidArgument("'boxes' has ", boxes, " boxes, wanted fewer than ", kMaxOrdered, ": indices have 32 bits");
}

}  // namespace polyop

// The order in which suppression visits boxes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>

namespace polyop {

/// Fills `order` with 0, 1, … sorted by falling score: equal scores keep the lower index first, NaN comes last.
inline void SortByFallingScore(const float* scores, std::span<int64_t> order) {
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [scores](int64_t a, int64_t b) {
    const float sa = scores[a], sb = scores[b];
    if (sa > sb) return true;
    if (sb > sa) return false;
    const bool a_nan = std::isnan(sa), b_nan = std::isnan(sb);
    return a_nan != b_nan ? b_nan : a < b;
  });
}

/// Fills `order` with the places of the scores above `threshold`, sorted in the same way; returns how many they are.
/// NaN is not above anything. `order` has room for `count`.
inline int64_t SortAbove(const float* scores, int64_t count, float threshold, int64_t* order) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    order[found] = i;
    found += scores[i] > threshold;
  }
  std::sort(order, order + found,
            [scores](int64_t a, int64_t b) { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); });
  return found;
}

}  // namespace polyop

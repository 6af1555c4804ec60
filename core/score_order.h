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

}  // namespace polyop

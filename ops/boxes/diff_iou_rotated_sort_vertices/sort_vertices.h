// SPDX-License-Identifier: Apache-2.0
// Sorts vertices by angle, for CPU and GPU.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// The direction of a vertex from the origin. The caller maps the origin itself to the x axis. Products of floats are
/// exact in double.
struct DirectionOfVertex {
  double x, y;

  POLYOP_HD bool IsKnown() const { return std::fabs(x) < INFINITY && std::fabs(y) < INFINITY; }
  /// Returns true if the angle in [0, 2 pi) is smaller than that of `other`.
  POLYOP_HD bool IsBefore(const DirectionOfVertex& other) const {
    if (IsLower() != other.IsLower()) return other.IsLower();
    return x * other.y > other.x * y;
  }

 private:
  POLYOP_HD bool IsLower() const { return y < 0 || (y == 0 && x < 0); }
};

/// Writes the 9 indices of a pair to `idx`. `valid` of its 24 vertices belong to the intersection.
template <class T>
POLYOP_HD void SortVertices(const T* vertices, const bool* mask, int64_t valid, int32_t* idx) {
  constexpr int kVertices = 24, kIndices = 9, kCrossings = 8;
  DirectionOfVertex directions[kVertices];
  int32_t order[kVertices];
  int known = 0, filler = kCrossings;
  for (int i = kVertices - 1; i >= kCrossings; --i) filler = mask[i] ? filler : i;
  const int count = valid < 3 ? 0 : static_cast<int>(std::min<int64_t>(valid, kIndices - 1));
  for (int i = 0; i < kVertices; ++i) {
    DirectionOfVertex own{ToFloat(vertices[2 * i]), ToFloat(vertices[2 * i + 1])};
    if (own.x == 0 && own.y == 0) own.x = 1;
    if (!mask[i] || !own.IsKnown()) continue;
    int position = known++;
    for (; position > 0 && own.IsBefore(directions[position - 1]); --position) {
      directions[position] = directions[position - 1];
      order[position] = order[position - 1];
    }
    directions[position] = own;
    order[position] = i;
  }
  for (int i = 0; i < kVertices && known < count; ++i) {
    const DirectionOfVertex own{ToFloat(vertices[2 * i]), ToFloat(vertices[2 * i + 1])};
    if (!mask[i] || !own.IsKnown()) order[known++] = i;
  }
  for (int k = 0; k < kIndices; ++k) idx[k] = k < count ? order[k] : k == count && count > 0 ? order[0] : filler;
}

}  // namespace polyop

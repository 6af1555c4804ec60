// SPDX-License-Identifier: Apache-2.0
// Neighborhood attention with one warp per query or key. The lanes of a warp first compute the positions of 32
// neighbours, one each; then groups of kGroup lanes visit them, one neighbour per group at a time.
#pragma once

#include <initializer_list>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/warp_lanes.h"
#include "ops/attention/neighborhood_attention/neighborhood.h"

namespace polyop::neighborhood {

inline constexpr int kGroup = 8;
inline constexpr int kGroups = kWarpLanes / kGroup;
/// Warps per block: neighbouring positions of a head, whose windows overlap.
inline constexpr int kWarps = 8;
/// Packs of a row that a lane accumulates.
inline constexpr int kPacks = 2;

/// A tensor [batch, positions, heads, size] as rows.
template <class T, int kWidth>
struct Row {
  const T* data;
  int64_t size;

  POLYOP_HD Pack<T, kWidth> Load(int64_t row, int64_t c) const {
    return *reinterpret_cast<const Pack<T, kWidth>*>(data + row * size + c);
  }
};

/// Returns a lane's part of the product of two rows, whose parts are added by Lanes::Sum<1, kGroup>.
template <class T, int kWidth>
POLYOP_DEVICE float PartOfProduct(const Row<T, kWidth>& a, int64_t row_a, const Row<T, kWidth>& b, int64_t row_b,
                                  int lane) {
  float sum = 0;
  for (int64_t c = lane % kGroup * kWidth; c < a.size; c += kGroup * kWidth) {
    const Pack<T, kWidth> x = a.Load(row_a, c), y = b.Load(row_b, c);
    for (int i = 0; i < kWidth; ++i) sum = std::fma(ToFloat(x.of[i]), ToFloat(y.of[i]), sum);
  }
  return sum;
}

/// A lane's sums: element c of a row is in pack c / (kGroup * kWidth).
template <int kWidth>
struct RowSums {
  float of[kPacks][kWidth];

  POLYOP_HD void Clear() {
    for (auto& pack : of) {
      for (float& sum : pack) sum = 0;
    }
  }
  POLYOP_HD void Scale(float factor) {
    for (auto& pack : of) {
      for (float& sum : pack) sum *= factor;
    }
  }
  /// Returns the index of the first element of a lane's pack in the part of a row that begins at `first`.
  POLYOP_HD static int64_t IndexOf(int64_t first, int pack, int lane) {
    return first + (pack * kGroup + lane % kGroup) * kWidth;
  }
  template <class T>
  POLYOP_HD void Add(float factor, const Row<T, kWidth>& from, int64_t row, int64_t first, int lane) {
    for (int p = 0; p < kPacks; ++p) {
      const int64_t c = IndexOf(first, p, lane);
      if (c >= from.size) break;
      const Pack<T, kWidth> x = from.Load(row, c);
      for (int i = 0; i < kWidth; ++i) of[p][i] = std::fma(factor, ToFloat(x.of[i]), of[p][i]);
    }
  }
  POLYOP_HD RowSums operator+(const RowSums& other) const {
    RowSums sums;
    for (int p = 0; p < kPacks; ++p) {
      for (int i = 0; i < kWidth; ++i) sums.of[p][i] = of[p][i] + other.of[p][i];
    }
    return sums;
  }
};

/// The part of a row that RowSums covers.
template <int kWidth>
inline constexpr int64_t kPartOfRow = int64_t{kPacks} * kGroup * kWidth;

/// Adds the sums of all groups, and writes them times `factor`. Destroys `sums`.
template <class T, int kWidth>
POLYOP_DEVICE void StoreSums(Lanes<RowSums<kWidth>>& sums, float factor, T* to, int64_t row, int64_t size,
                             int64_t first) {
  sums.template Sum<kGroup, kWarpLanes>([](const auto& a, const auto& b) { return a + b; });
  ForLanes([&](int lane) {
    if (lane >= kGroup) return;
    for (int p = 0; p < kPacks; ++p) {
      const int64_t c = RowSums<kWidth>::IndexOf(first, p, lane);
      if (c >= size) break;
      Pack<T, kWidth> x;
      for (int i = 0; i < kWidth; ++i) x.of[i] = FromFloat<T>(sums[lane].of[p][i] * factor);
      *reinterpret_cast<Pack<T, kWidth>*>(to + row * size + c) = x;
    }
  });
}

/// The rows that a warp computes, and those of its neighbours.
struct WarpRows {
  int64_t positions, heads, count;
  Divider by_heads, by_positions;

  WarpRows(int64_t batch, int64_t all_positions, int64_t all_heads)
      : positions(all_positions),
        heads(all_heads),
        count(batch * all_positions),
        by_heads(all_heads),
        by_positions(all_positions) {}

  int64_t blocks() const { return BlocksFor(count, kWarps) * heads; }

  struct Item {
    bool exists;
    int64_t row, position, first, head, heads;

    /// Returns the row of another position of the same batch entry and head.
    POLYOP_HD int64_t RowAt(int64_t other) const { return (first + other) * heads + head; }
  };
  POLYOP_HD Item At(int64_t block, int warp) const {
    Item item{};
    const int64_t at = by_heads.Split(block, &item.head) * kWarps + warp;
    item.exists = at < count;
    if (!item.exists) return item;
    item.first = by_positions.Split(at, &item.position);
    item.first *= positions;
    item.heads = heads;
    item.row = at * heads + item.head;
    return item;
  }
};

/// Calls visit(item) for each row with all lanes of a warp.
template <class Visit>
Status ForRows(const CudaContext& cuda, const WarpRows& rows, const Visit& visit) {
  return ForBlocks(cuda, rows.blocks(), kWarps * kWarpLanes, 0, [=] POLYOP_DEVICE(Block& block) {
    block.ForWarps([&](int warp) {
      const WarpRows::Item item = rows.At(block.index, warp);
      if (item.exists) visit(item);
    });
  });
}

/// Adds factors[n] * rows[n] of `from` for `count` <= 32 rows.
template <class T, int kWidth>
POLYOP_DEVICE void AddRows(const Lanes<int64_t>& rows, const Lanes<float>& factors, int count,
                           const Row<T, kWidth>& from, int64_t first, Lanes<RowSums<kWidth>>& sums) {
  for (int n = 0; n < count; n += kGroups) {
    const auto visited = [n](int lane) { return n + lane / kGroup; };
    Lanes<int64_t> row = rows.Gather(visited);
    Lanes<float> factor = factors.Gather(visited);
    ForLanes([&](int lane) {
      if (visited(lane) < count) sums[lane].Add(factor[lane], from, row[lane], first, lane);
    });
  }
}

/// Sets products[n] to the product of row `row` of `a` with row rows[n] of `b`, for `count` <= 32 rows.
template <class T, int kWidth>
POLYOP_DEVICE void MultiplyRows(int64_t row, const Row<T, kWidth>& a, const Lanes<int64_t>& rows, int count,
                                const Row<T, kWidth>& b, Lanes<float>& products) {
  ForLanes([&](int lane) { products[lane] = 0; });
  for (int n = 0; n < count; n += kGroups) {
    const auto visited = [n](int lane) { return n + lane / kGroup; };
    Lanes<int64_t> other = rows.Gather(visited);
    Lanes<float> sums;
    ForLanes([&](int lane) { sums[lane] = visited(lane) < count ? PartOfProduct(a, row, b, other[lane], lane) : 0; });
    sums.template Sum<1, kGroup>([](float x, float y) { return x + y; });
    Lanes<float> moved = sums.Gather([](int lane) { return lane % kGroups * kGroup; });
    ForLanes([&](int lane) {
      if (lane / kGroups == n / kGroups) products[lane] = moved[lane];
    });
  }
}

/// Returns the larger number, or NaN.
POLYOP_HD inline float LargerOrNan(float a, float b) { return a > b || a != a ? a : b; }

/// Returns whether rows of all these sizes can be loaded in packs of kWidth.
template <int kWidth, class T>
bool AreAligned(std::initializer_list<const T*> tensors, std::initializer_list<int64_t> sizes) {
  for (const T* tensor : tensors) {
    if (tensor != nullptr && !Pack<T, kWidth>::IsAligned(tensor)) return false;
  }
  for (const int64_t size : sizes) {
    if (size % kWidth != 0) return false;
  }
  return true;
}

}  // namespace polyop::neighborhood

// SPDX-License-Identifier: Apache-2.0
// Finds the nearest points of queries on the GPU.
#pragma once

#include "ops/points/tiles_cuda.h"

namespace polyop {

// The nearest points of one query so far: a max-heap ordered by distance, then by index. Element h of query q is at
// h * stride, so that neighbouring threads access neighbouring memory.
struct NearestHeap {
  double* squared;
  int32_t* index;
  int64_t stride;
  int64_t size = 0;

  POLYOP_HD bool Farther(int64_t a, int64_t b) const {
    const double da = squared[a * stride], db = squared[b * stride];
    return da > db || (da == db && index[a * stride] > index[b * stride]);
  }
  POLYOP_HD void Swap(int64_t a, int64_t b) const {
    const double d = squared[a * stride];
    const int32_t i = index[a * stride];
    squared[a * stride] = squared[b * stride];
    index[a * stride] = index[b * stride];
    squared[b * stride] = d;
    index[b * stride] = i;
  }
  POLYOP_HD void SiftDown(int64_t count) const {
    for (int64_t at = 0, child = 1; child < count; at = child, child = 2 * at + 1) {
      if (child + 1 < count && Farther(child + 1, child)) ++child;
      if (!Farther(child, at)) return;
      Swap(child, at);
    }
  }
  // Requires: points are offered in ascending order of index.
  POLYOP_HD void Offer(double distance, int32_t point, int64_t k) {
    if (size == k) {
      if (!(distance < squared[0])) return;
      squared[0] = distance;
      index[0] = point;
      return SiftDown(size);
    }
    int64_t at = size++;
    squared[at * stride] = distance;
    index[at * stride] = point;
    for (; at > 0 && Farther(at, (at - 1) / 2); at = (at - 1) / 2) Swap(at, (at - 1) / 2);
  }
  // Sorts by ascending distance, which destroys the heap.
  POLYOP_HD void Sort() const {
    for (int64_t last = size - 1; last > 0; --last) {
      Swap(0, last);
      SiftDown(last);
    }
  }
};

/// The `k` nearest points of each query, nearest first. Element h of query q is at h * `queries` + q. The memory is
/// scratch memory of the call, or null if the lists are in registers of a warp.
struct NearestLists {
  double* squared;
  int32_t* index;
  int64_t queries, k;

  static NearestLists Allocate(const CudaContext& cuda, int64_t queries, int64_t k) {
    if (k <= kWarpLanes) return {nullptr, nullptr, queries, k};
    return InMemory(cuda, queries, k);
  }
  /// One thread searches for each query, which is faster for many queries with few nearest points.
  static NearestLists InMemory(const CudaContext& cuda, int64_t queries, int64_t k) {
    return {cuda.Allocate<double>(queries * k), cuda.Allocate<int32_t>(queries * k), queries, k};
  }
};

/// State of a search for the nearest points.
struct NearestState {
  float at[3];
  NearestHeap nearest;
  float reach;  // upper bound of the squared distance, in float, of the nearest points
  int64_t begin;

  template <class T>
  POLYOP_HD void Start(const NearestLists& lists, int64_t q, const T* query, int64_t first_row) {
    for (int a = 0; a < 3; ++a) at[a] = ToFloat(query[a]);
    const bool in_memory = lists.squared != nullptr;
    nearest = {in_memory ? lists.squared + q : nullptr, in_memory ? lists.index + q : nullptr, lists.queries};
    reach = INFINITY;
    begin = first_row;
  }
  /// Offers a point with its row, relative to the query's first one.
  POLYOP_HD void Offer(const float* point, int64_t row, int64_t k) {
    if (SurelyBeyond(at, point, reach)) return;
    const double exact = SquaredDistance(at, point);
    if (!std::isfinite(exact)) return;
    nearest.Offer(exact, static_cast<int32_t>(row - begin), k);
    if (nearest.size == k) reach = static_cast<float>(nearest.squared[0] * (1 + 1e-7));
  }
};

/// A point with its distance. Lists have {infinity, INT32_MAX} behind their end.
struct NearestEntry {
  double squared;
  int32_t index, unused;

  POLYOP_HD bool Before(const NearestEntry& other) const {
    return squared < other.squared || (squared == other.squared && index < other.index);
  }
};

namespace nearest_internal {

// The query of a warp, and its nearest points in ascending order, one per lane.
struct WarpQuery {
  NearestState state;
  Lanes<NearestEntry> nearest;
};

POLYOP_DEVICE inline void Insert(const NearestEntry& entry, Lanes<NearestEntry>& nearest) {
  Lanes<NearestEntry> before = nearest.Gather([](int lane) { return lane > 0 ? lane - 1 : 0; });
  ForLanes([&](int lane) {
    if (entry.Before(nearest[lane])) {
      nearest[lane] = lane > 0 && entry.Before(before[lane]) ? before[lane] : entry;
    }
  });
}

template <class Search>
struct WarpSearch {
  using State = WarpQuery;

  Search search;
  int k;

  POLYOP_DEVICE PointRange Start(int64_t q, State& query) const {
    ForLanes([&](int lane) { query.nearest[lane] = {INFINITY, INT32_MAX, 0}; });
    return search.Start(q, query.state);
  }
  POLYOP_DEVICE void Offer(State& query, const float* points, int count, int64_t first_row) const {
    NearestState& state = query.state;
    uint32_t candidates =
        Ballot([&](int lane) { return lane < count && !SurelyBeyond(state.at, points + 3 * lane, state.reach); });
    for (; candidates != 0; candidates &= candidates - 1) {
      const int i = LowestBit(candidates);
      const double exact = SquaredDistance(state.at, points + 3 * i);
      if (!std::isfinite(exact)) continue;
      Insert({exact, static_cast<int32_t>(first_row + i - state.begin), 0}, query.nearest);
      state.reach = static_cast<float>(query.nearest.At(k - 1).squared * (1 + 1e-7));
    }
  }
  POLYOP_DEVICE bool IsComplete(const State&) const { return false; }
  POLYOP_DEVICE void Finish(State& query, int64_t q) const {
    ForLanes([&](int lane) {
      const NearestEntry& entry = query.nearest[lane];
      if (lane < k) search.Write(q, lane, entry.squared < INFINITY, entry.squared, entry.index);
    });
  }
};

}  // namespace nearest_internal

/// Finds the nearest points of every query. `Search` is that of ForTiles, with `lists`, whose State is NearestState; it
/// has Write(q, k, has, squared, index), which writes the query's k-th nearest point if `has`.
template <class T, class Search>
Status SearchNearest(const CudaContext& cuda, const T* points, int64_t num_points, int64_t num_queries,
                     const Search& search) {
  if (search.lists.squared == nullptr) {
    return ForTilesByWarp(cuda, points, num_points, num_queries,
                          nearest_internal::WarpSearch<Search>{search, static_cast<int>(search.lists.k)});
  }
  return ForTiles(cuda, points, num_points, num_queries, search);
}

/// Writes the nearest points of a query, which are in a heap.
template <class Search>
POLYOP_HD void WriteNearest(const Search& search, const NearestHeap& nearest, int64_t q) {
  nearest.Sort();
  for (int64_t k = 0; k < search.lists.k; ++k) {
    const bool has = k < nearest.size;
    search.Write(q, k, has, has ? nearest.squared[k * nearest.stride] : 0, has ? nearest.index[k * nearest.stride] : 0);
  }
}

}  // namespace polyop

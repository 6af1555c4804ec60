// Finds the nearest points of queries on the GPU.
#pragma once

#include "families/neighbours/tiles_cuda.h"

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
/// scratch memory of the call.
struct NearestLists {
  double* squared;
  int32_t* index;
  int64_t queries, k;

  static NearestLists Allocate(const CudaContext& cuda, int64_t queries, int64_t k) {
    return {cuda.Allocate<double>(queries * k), cuda.Allocate<int32_t>(queries * k), queries, k};
  }
};

/// State of a tiled search (families/neighbours/tiles_cuda.h) for the nearest points.
struct NearestState {
  float at[3];
  NearestHeap nearest;
  float reach;  // upper bound of the squared distance, in float, of the nearest points
  int64_t begin;

  template <class T>
  POLYOP_HD void Start(const NearestLists& lists, int64_t q, const T* query, int64_t first_row) {
    for (int a = 0; a < 3; ++a) at[a] = ToFloat(query[a]);
    nearest = {lists.squared + q, lists.index + q, lists.queries};
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

}  // namespace polyop

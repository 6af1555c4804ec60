// Compares every query with every point of its cloud on the GPU, tile by tile through shared memory.
#pragma once

#include "kernels/cuda/cuda.h"

namespace polyop {

/// Points [begin, end), indexed across all clouds.
struct PointRange {
  int64_t begin, end;
};

/// Batches of equal numbers of points and queries.
struct BatchRanges {
  int64_t points;   // per batch
  Divider queries;  // per batch

  BatchRanges(int64_t num_points, int64_t num_queries) : points(num_points), queries(num_queries) {}
  POLYOP_HD PointRange Of(int64_t query) const {
    const int64_t batch = queries.Quotient(query);
    return {batch * points, (batch + 1) * points};
  }
};

/// A thread's query and its state.
template <class State>
struct TiledQuery {
  State state;
  PointRange range;
};

/// `Search` has
///   State                            the state of a query between points
///   PointRange Start(q, state)       initialises query q and returns the points to compare it with
///   Offer(state, point, row)         compares it with a point, in ascending order of rows. `point` is float x, y, z;
///                                    `row` is an index across all points
///   Finish(state, q)                 writes the outputs
template <class T, class Search>
Status ForTiles(const CudaContext& cuda, const T* points, int64_t num_points, int64_t num_queries,
                const Search& search) {
  constexpr int kTile = 512;     // points per tile
  constexpr int kQueries = 128;  // queries per block
  constexpr int64_t kShared = kTile * 3 * 4 + kQueries * 2 * 8 + 64;
  return ForBlocks(cuda, BlocksFor(num_queries, kQueries), kQueries, kShared, [=] POLYOP_DEVICE(Block& block) {
    using Query = TiledQuery<typename Search::State>;
    float* const tile = block.Shared<float>(kTile * 3);
    int64_t* const begins = block.Shared<int64_t>(kQueries);
    int64_t* const ends = block.Shared<int64_t>(kQueries);
    int64_t* const range = block.Shared<int64_t>(2);
    Block::Local<Query> mine(block);
    const int64_t first = block.index * kQueries;
    block.ForThreads([&](int t) {
      Query& query = mine[t];
      query.range = {0, 0};
      if (first + t < num_queries) query.range = search.Start(first + t, query.state);
      begins[t] = query.range.begin < query.range.end ? query.range.begin : num_points;
      ends[t] = query.range.end;
    });
    block.ForThreads([&](int t) {
      if (t != 0) return;
      range[0] = num_points;
      range[1] = 0;
      for (int i = 0; i < kQueries; ++i) {
        range[0] = begins[i] < range[0] ? begins[i] : range[0];
        range[1] = ends[i] > range[1] ? ends[i] : range[1];
      }
    });
    for (int64_t tile_begin = range[0]; tile_begin < range[1]; tile_begin += kTile) {
      const int64_t tile_end = tile_begin + kTile < range[1] ? tile_begin + kTile : range[1];
      block.ForThreads([&](int t) {
        for (int64_t i = t; i < 3 * (tile_end - tile_begin); i += kQueries) {
          tile[i] = ToFloat(points[3 * tile_begin + i]);
        }
      });
      block.ForThreads([&](int t) {
        Query& query = mine[t];
        const int64_t begin = query.range.begin > tile_begin ? query.range.begin : tile_begin;
        const int64_t end = query.range.end < tile_end ? query.range.end : tile_end;
        for (int64_t row = begin; row < end; ++row) search.Offer(query.state, tile + 3 * (row - tile_begin), row);
      });
    }
    block.ForThreads([&](int t) {
      if (first + t < num_queries) search.Finish(mine[t].state, first + t);
    });
  });
}

/// Does not fuse products and sums, like the CPU kernels.
POLYOP_HD inline double SquaredDistance(const float* a, const float* b) {
  const double x = static_cast<double>(a[0]) - static_cast<double>(b[0]);
  const double y = static_cast<double>(a[1]) - static_cast<double>(b[1]);
  const double z = static_cast<double>(a[2]) - static_cast<double>(b[2]);
  return x * x + y * y + z * z;
}

/// Returns true only if the squared distance is certainly greater than `reach`. The error of the float computation is
/// less than 5 roundings plus underflow; overflow is left to the computation in double.
POLYOP_HD inline bool SurelyBeyond(const float* a, const float* b, float reach) {
  const float x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
  const float rough = x * x + y * y + z * z;
  return rough * (1 - 1e-6f) - 1e-37f > reach && rough < INFINITY;
}

}  // namespace polyop

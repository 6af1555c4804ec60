// SPDX-License-Identifier: Apache-2.0
// Compares every query with every point of its cloud on the GPU, tile by tile through shared memory.
#pragma once

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/warp_lanes.h"

namespace polyop {

/// Points [begin, end), indexed across all clouds.
struct PointRange {
  int64_t begin, end;
};

/// The part of a range in a tile, relative to the tile's first point. It is empty if end <= begin.
struct TileRange {
  int begin, end;

  POLYOP_HD TileRange(const PointRange& range, int64_t tile_begin, int64_t tile_end) {
    const int64_t first = range.begin > tile_begin ? range.begin : tile_begin;
    const int64_t last = range.end < tile_end ? range.end : tile_end;
    begin = first < last ? static_cast<int>(first - tile_begin) : 0;
    end = first < last ? static_cast<int>(last - tile_begin) : 0;
  }
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

/// Like ForTiles, with one warp per query, which compares it with up to 32 points at a time. All lanes of the warp call
/// the functions of `Search`:
///   State                                    the state of a query between points
///   PointRange Start(q, state)               initialises query q and returns the points to compare it with
///   Offer(state, points, count, first_row)   compares it with `count` points
///   bool IsComplete(state)                   whether further points have no effect
///   Finish(state, q)                         writes the outputs
template <class T, class Search>
Status ForTilesByWarp(const CudaContext& cuda, const T* points, int64_t num_points, int64_t num_queries,
                      const Search& search) {
  constexpr int kTile = 512, kWarps = 8;
  constexpr int64_t kShared = kTile * 3 * 4 + kWarps * 2 * 8 + 64;
  return ForBlocks(cuda, BlocksFor(num_queries, kWarps), kWarps * kWarpLanes, kShared, [=] POLYOP_DEVICE(Block& block) {
    using Query = TiledQuery<typename Search::State>;
    float* const tile = block.Shared<float>(kTile * 3);
    int64_t* const begins = block.Shared<int64_t>(kWarps);
    int64_t* const ends = block.Shared<int64_t>(kWarps);  // -1: complete
    Block::WarpLocal<Query> mine(block);
    const int64_t first = block.index * kWarps;
    block.ForWarps([&](int warp) {
      Query& query = mine[warp];
      query.range = {0, 0};
      if (first + warp < num_queries) query.range = search.Start(first + warp, query.state);
      ForLanes([&](int lane) {
        if (lane != 0) return;
        begins[warp] = query.range.begin < query.range.end ? query.range.begin : num_points;
        ends[warp] = query.range.end;
      });
    });
    int64_t tile_begin = num_points;
    for (int warp = 0; warp < kWarps; ++warp) tile_begin = begins[warp] < tile_begin ? begins[warp] : tile_begin;
    for (;; tile_begin += kTile) {
      int64_t all_end = 0;
      for (int warp = 0; warp < kWarps; ++warp) all_end = ends[warp] > all_end ? ends[warp] : all_end;
      if (tile_begin >= all_end) break;
      const int64_t tile_end = tile_begin + kTile < all_end ? tile_begin + kTile : all_end;
      block.ForThreads([&](int t) {
        for (int64_t i = t; i < 3 * (tile_end - tile_begin); i += kWarps * kWarpLanes) {
          tile[i] = ToFloat(points[3 * tile_begin + i]);
        }
      });
      block.ForWarps([&](int warp) {
        Query& query = mine[warp];
        const TileRange rows(query.range, tile_begin, tile_end);
        for (int i = rows.begin; i < rows.end && !search.IsComplete(query.state); i += kWarpLanes) {
          const int left = rows.end - i;
          search.Offer(query.state, tile + 3 * i, left < kWarpLanes ? left : kWarpLanes, tile_begin + i);
        }
        if (rows.begin >= rows.end || !search.IsComplete(query.state)) return;
        query.range.end = -1;
        ForLanes([&](int lane) {
          if (lane == 0) ends[warp] = -1;
        });
      });
    }
    block.ForWarps([&](int warp) {
      if (first + warp < num_queries) search.Finish(mine[warp].state, first + warp);
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

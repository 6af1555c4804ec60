// SPDX-License-Identifier: Apache-2.0
// Points in 3-D boxes on a GPU.
#pragma once

#include "kernels/cuda/warp_lanes.h"
#include "ops/boxes3d/box3d.h"

namespace polyop {

/// Reads `count` rows whose z is that of the bottom, so that sines and cosines are computed once for each box.
template <class T>
Status PrepareBoxes(const CudaContext& cuda, const T* boxes, int64_t count, Box3d* prepared) {
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { prepared[i] = Box3d::OfBottom(boxes + 7 * i); });
}

/// Finds the points in a box in ascending order of their indices, with a block of kThreadsPerBlock threads. The lanes
/// of a warp test neighbouring points, whose coordinates they request before the last ones are visited.
class PointsInside {
 public:
  /// Maximum number of indices per visit.
  static constexpr int kMax = 8 * kThreadsPerBlock;
  static constexpr int64_t kSharedBytes = 4 * (kWarpLanes + kMax) + 2 * 16;

  POLYOP_DEVICE explicit PointsInside(Block& block)
      : block_(block),
        words_(block.Shared<uint32_t>(kWarpLanes)),
        inside_(block.Shared<int32_t>(kMax)),
        ahead_(block) {}

  /// Calls visit(indices, count) for rounds of at least `enough` points, or of as many as fit or are left, skipping
  /// empty ones, until it returns false. All threads call it, outside of a ForThreads phase.
  template <class T, class Visit>
  POLYOP_DEVICE void ForEachRound(const Box3d& box, const T* points, int64_t count, int64_t enough,
                                  const Visit& visit) {
    if (count <= 0) return;
    int32_t held = 0;
    block_.ForThreads([&](int t) { Request(points, count, 0, t); });
    for (int64_t first = 0; first < count; first += kTested) {
      block_.ForWarps([&](int warp) { Test(box, count, first, warp); });
      int32_t found = 0;
      block_.ForWarps([&](int warp) {
        ForLanes([&](int lane) { Request(points, count, first + kTested, warp * kWarpLanes + lane); });
        found = Append(held, first, warp);
      });
      held += found;
      const bool visits = first + kTested >= count || held >= enough || held > kMax - kTested;
      if (held == 0 || !visits) continue;
      if (!visit(inside_, held)) return;
      held = 0;
    }
  }

 private:
  static constexpr int kOfWarp = kWarpLanes / (kThreadsPerBlock / kWarpLanes);  // words
  static constexpr int kTested = kWarpLanes * kWarpLanes;                       // points at a time, a word per lane

  struct Coordinates {
    float of[kOfWarp][3];
  };
  struct Counts {
    int32_t before, all;
  };

  // Returns the index of the point that a lane tests for word j of its warp.
  POLYOP_HD static int64_t Point(int64_t first, int warp, int j, int lane) {
    return first + (warp * kOfWarp + j) * kWarpLanes + lane;
  }

  // Requests the coordinates of a thread's points of the next test.
  template <class T>
  POLYOP_DEVICE void Request(const T* points, int64_t count, int64_t first, int t) {
    for (int j = 0; j < kOfWarp; ++j) {
      const int64_t i = Point(first, t / kWarpLanes, j, t % kWarpLanes);
      const T* const point = points + 3 * (i < count ? i : count - 1);
      for (int axis = 0; axis < 3; ++axis) ahead_[t].of[j][axis] = ToFloat(point[axis]);
    }
  }

  // Writes a warp's words: a bit per point, whether it is inside.
  POLYOP_DEVICE void Test(const Box3d& box, int64_t count, int64_t first, int warp) {
    for (int j = 0; j < kOfWarp; ++j) {
      const uint32_t bits = Ballot([&](int lane) {
        return Point(first, warp, j, lane) < count && box.Holds(ahead_[warp * kWarpLanes + lane].of[j]);
      });
      ForLanes([&](int lane) {
        if (lane == 0) words_[warp * kOfWarp + j] = bits;
      });
    }
  }

  // Appends the points of a warp's words to those that are held; returns the number of all warps' points.
  POLYOP_DEVICE int32_t Append(int32_t held, int64_t first, int warp) {
    Lanes<Counts> counts;
    ForLanes([&](int lane) {
      const int32_t number = PopCount(words_[lane]);
      counts[lane] = {lane < warp * kOfWarp ? number : 0, number};
    });
    const Counts sum =
        counts.Reduce([](const Counts& a, const Counts& b) { return Counts{a.before + b.before, a.all + b.all}; });
    int32_t at = held + sum.before;
    for (int word = warp * kOfWarp; word < (warp + 1) * kOfWarp; ++word) {
      const uint32_t bits = words_[word];
      ForLanes([&](int lane) {
        if ((bits >> lane & 1) == 0) return;
        const uint32_t lower = bits & ((uint32_t{1} << lane) - 1);
        inside_[at + PopCount(lower)] = static_cast<int32_t>(Point(first, 0, word, lane));
      });
      at += PopCount(bits);
    }
    return sum.all;
  }

  Block& block_;
  uint32_t* const words_;
  int32_t* const inside_;
  Block::Local<Coordinates> ahead_;
};

}  // namespace polyop

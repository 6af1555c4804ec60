// SPDX-License-Identifier: Apache-2.0
// Farthest point sampling on the GPU: one block per cloud.
#pragma once

#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/warp_lanes.h"

namespace polyop {

struct FarthestPoint {
  float distance;
  int32_t index;
};

/// Returns the farther of two points; ties go to the lower index.
POLYOP_HD inline FarthestPoint FartherOf(const FarthestPoint& a, const FarthestPoint& b) {
  return b.distance > a.distance || (b.distance == a.distance && b.index < a.index) ? b : a;
}

/// Neighbouring points that a thread handles together.
inline constexpr int kFarthestPoints = 4;

namespace farthest_internal {

constexpr int kMaxThreads = 512;

// The running distances of a thread's points.
template <int kGroups>
struct RunningDistances {
  float of[kGroups > 0 ? kGroups : 1][kFarthestPoints];
};

// The farthest of neighbouring points: values of `nearest` are running distances. Updates `mine`.
POLYOP_HD inline void TakeFarthest(const float* nearest, int32_t first, FarthestPoint* mine) {
  for (int e = 0; e < kFarthestPoints; ++e) {
    if (nearest[e] > mine->distance) *mine = {nearest[e], first + e};
  }
}

// Chooses points with `block_threads` threads per block. The running distances of kGroups groups of points per thread
// are in registers; if kGroups is 0, those of all points are in global memory. Each choice needs one barrier: every
// warp finds the farthest of the warps' farthest points, which are in shared memory, alternately in one of two arrays.
template <int kGroups, class Cloud>
Status Sample(const CudaContext& cuda, int64_t clouds, int64_t points, int64_t chosen, int block_threads,
              const Cloud& cloud, float* running, int32_t* idx) {
  using Registers = RunningDistances<kGroups>;
  const auto group_count = static_cast<int32_t>(BlocksFor(points, kFarthestPoints));
  const int64_t bytes = 2 * kWarpLanes * static_cast<int64_t>(sizeof(FarthestPoint));
  return ForBlocks<kMaxThreads>(cuda, clouds, block_threads, bytes, [=] POLYOP_DEVICE(Block& block) {
    FarthestPoint* const of_warps = block.Shared<FarthestPoint>(2 * kWarpLanes);
    Block::Local<Registers> registers(block);
    const int64_t c = block.index;
    const int threads = block.threads();
    float* const distances = kGroups > 0 ? nullptr : running + c * group_count * kFarthestPoints;
    const auto initial = [&](int64_t i) { return i < points ? cloud.Initial(c, i) : -INFINITY; };
    block.ForThreads([&](int t) {
      if constexpr (kGroups > 0) {
        Registers& mine = registers[t];
        for (int g = 0; g < kGroups; ++g) {
          for (int e = 0; e < kFarthestPoints; ++e) {
            mine.of[g][e] = initial((int64_t{g} * threads + t) * kFarthestPoints + e);
          }
        }
      } else {
        for (int64_t g = t; g < group_count; g += threads) {
          for (int e = 0; e < kFarthestPoints; ++e) {
            distances[g * kFarthestPoints + e] = initial(g * kFarthestPoints + e);
          }
        }
      }
      if (t == 0) idx[c * chosen] = 0;
      if (t < kWarpLanes) of_warps[t] = {0, 0};
    });
    for (int64_t k = 1; k < chosen; ++k) {
      const FarthestPoint* const before = of_warps + (k - 1) % 2 * kWarpLanes;
      FarthestPoint* const after = of_warps + k % 2 * kWarpLanes;
      block.ForWarps([&](int warp) {
        const int warps = k == 1 ? 1 : threads / kWarpLanes;
        Lanes<FarthestPoint> best;
        ForLanes([&](int lane) { best[lane] = before[lane < warps ? lane : 0]; });
        const int32_t last = best.Reduce([](const auto& a, const auto& b) { return FartherOf(a, b); }).index;
        const auto center = cloud.Center(c, last);
        ForLanes([&](int lane) {
          FarthestPoint& mine = best[lane];
          const int32_t t = warp * kWarpLanes + lane;
          if (t == 0 && k > 1) idx[c * chosen + k - 1] = last;
          mine = {-INFINITY, t < group_count ? t * kFarthestPoints : INT32_MAX};
          float found[kFarthestPoints];
          if constexpr (kGroups > 0) {
            Registers& nearest = registers[t];
#ifdef __CUDACC__
#pragma unroll
#endif
            for (int g = 0; g < kGroups; ++g) {
              const int32_t first = (g * threads + t) * kFarthestPoints;
              cloud.Distances(center, first, found);
              for (int e = 0; e < kFarthestPoints; ++e) {
                nearest.of[g][e] = found[e] < nearest.of[g][e] ? found[e] : nearest.of[g][e];
              }
              TakeFarthest(nearest.of[g], first, &mine);
            }
          } else {
            for (int32_t g = t; g < group_count; g += threads) {
              float* const nearest = distances + int64_t{g} * kFarthestPoints;
              cloud.Distances(center, g * kFarthestPoints, found);
              for (int e = 0; e < kFarthestPoints; ++e) nearest[e] = found[e] < nearest[e] ? found[e] : nearest[e];
              TakeFarthest(nearest, g * kFarthestPoints, &mine);
            }
          }
        });
        const FarthestPoint farthest = best.Reduce([](const auto& a, const auto& b) { return FartherOf(a, b); });
        ForLanes([&](int lane) {
          if (lane == 0) after[warp] = farthest;
        });
      });
    }
    block.ForThreads([&](int t) {
      if (t != 0 || chosen < 2) return;
      FarthestPoint farthest = of_warps[(chosen - 1) % 2 * kWarpLanes];
      for (int w = 1; w < threads / kWarpLanes; ++w) {
        farthest = FartherOf(farthest, of_warps[(chosen - 1) % 2 * kWarpLanes + w]);
      }
      idx[c * chosen + chosen - 1] = farthest.index;
    });
  });
}

// Returns the number of groups of points per thread that are in registers, or 0.
constexpr int GroupsPerThread(int64_t points) {
  return points <= 2 * kFarthestPoints * kMaxThreads ? 2 : points <= 8 * kFarthestPoints * kMaxThreads ? 8 : 0;
}

constexpr int Threads(int64_t points) {
  const int64_t per_thread = GroupsPerThread(points) * kFarthestPoints;
  if (per_thread == 0) return kMaxThreads;
  return static_cast<int>(BlocksFor(std::max<int64_t>(points, 1), per_thread * kWarpLanes)) * kWarpLanes;
}

}  // namespace farthest_internal

/// Returns the number of points of a cloud, with the points behind its end, whose distances SampleFarthest reads.
constexpr int64_t PaddedPoints(int64_t points) {
  const int groups = farthest_internal::GroupsPerThread(points);
  return groups > 0 ? int64_t{groups} * farthest_internal::Threads(points) * kFarthestPoints
                    : BlocksFor(points, kFarthestPoints) * kFarthestPoints;
}

/// Sets idx[c, 0] to 0 and each following element to the point with the largest running distance, which is the minimum
/// distance to the points chosen before. `cloud.Initial(c, i)` returns the initial running distance of point i,
/// `cloud.Center(c, last)` what is needed to compute distances from a chosen point, and `cloud.Distances(center, i,
/// to)` computes the distances of points [i, i + kFarthestPoints) from it; NaN is ignored. Those of points behind the
/// end, up to PaddedPoints, have no effect.
template <class Cloud>
Status SampleFarthest(const CudaContext& cuda, int64_t clouds, int64_t points, int64_t chosen, const Cloud& cloud,
                      int32_t* idx) {
  const int groups = farthest_internal::GroupsPerThread(points), threads = farthest_internal::Threads(points);
  float* const running = groups > 0 ? nullptr : cuda.Allocate<float>(clouds * PaddedPoints(points));
  switch (groups) {
    case 2: return farthest_internal::Sample<2>(cuda, clouds, points, chosen, threads, cloud, running, idx);
    case 8: return farthest_internal::Sample<8>(cuda, clouds, points, chosen, threads, cloud, running, idx);
    default: return farthest_internal::Sample<0>(cuda, clouds, points, chosen, threads, cloud, running, idx);
  }
}

}  // namespace polyop

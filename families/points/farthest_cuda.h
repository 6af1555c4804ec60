// Farthest point sampling on a GPU: one block for each cloud.
#pragma once

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

struct FarthestPoint {
  float distance;
  int32_t index;
};

/// The farther of two points, of equals the one with the lower index.
POLYOP_HD inline FarthestPoint FartherOf(const FarthestPoint& a, const FarthestPoint& b) {
  return b.distance > a.distance || (b.distance == a.distance && b.index < a.index) ? b : a;
}

/// idx[c, 0] is 0; after that comes the point whose running distance, the least of those to the points chosen before,
/// is greatest. `cloud.Initial(c, i)` is what point i's running distance begins with, `cloud.Distance(c, last, i)` how
/// far it is from a chosen one; NaN counts for nothing.
template <class Cloud>
Status SampleFarthest(const CudaContext& cuda, int64_t clouds, int64_t points, int64_t chosen, const Cloud& cloud,
                      int32_t* idx) {
  constexpr int kThreads = 256;
  float* const running = cuda.Allocate<float>(clouds * points);
  return ForBlocks(cuda, clouds, kThreads, kThreads * sizeof(FarthestPoint), [=] POLYOP_DEVICE(Block& block) {
    FarthestPoint* const best = block.Shared<FarthestPoint>(kThreads);
    const int64_t c = block.index;
    float* const distances = running + c * points;
    block.ForThreads([&](int t) {
      for (int64_t i = t; i < points; i += kThreads) distances[i] = cloud.Initial(c, i);
      if (t == 0) {
        best[0] = {0, 0};
        idx[c * chosen] = 0;
      }
    });
    for (int64_t k = 1; k < chosen; ++k) {
      const int64_t last = best[0].index;
      block.ForThreads([](int) {});  // all have read it
      block.ForThreads([&](int t) {
        FarthestPoint mine = {-INFINITY, INT32_MAX};
        for (int64_t i = t; i < points; i += kThreads) {
          const float distance = cloud.Distance(c, last, i);
          const float least = distance < distances[i] ? distance : distances[i];
          distances[i] = least;
          mine = FartherOf(mine, {least, static_cast<int32_t>(i)});
        }
        best[t] = mine;
      });
      ReduceBlock(block, best, kThreads,
                  [](const FarthestPoint& a, const FarthestPoint& b) { return FartherOf(a, b); });
      block.ForThreads([&](int t) {
        if (t == 0) idx[c * chosen + k] = best[0].index;
      });
    }
  });
}

}  // namespace polyop

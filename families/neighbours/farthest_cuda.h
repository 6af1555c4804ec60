// Farthest point sampling on the GPU: one block per cloud.
#pragma once

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

struct FarthestPoint {
  float distance;
  int32_t index;
};

/// Returns the farther of two points; ties go to the lower index.
POLYOP_HD inline FarthestPoint FartherOf(const FarthestPoint& a, const FarthestPoint& b) {
  return b.distance > a.distance || (b.distance == a.distance && b.index < a.index) ? b : a;
}

/// Sets idx[c, 0] to 0 and each following element to the point with the largest running distance, which is the minimum
/// distance to the points chosen before. `cloud.Initial(c, i)` returns the initial running distance of point i,
/// `cloud.Distance(c, last, i)` its distance from a chosen point; NaN is ignored.
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
      block.ForThreads([](int) {});  // barrier: all threads have read it
      block.ForThreads([&](int t) {
        FarthestPoint mine = {-INFINITY, INT32_MAX};
        for (int64_t i = t; i < points; i += kThreads) {
          const float distance = cloud.Distance(c, last, i);
          const float nearest = distance < distances[i] ? distance : distances[i];
          distances[i] = nearest;
          mine = FartherOf(mine, {nearest, static_cast<int32_t>(i)});
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

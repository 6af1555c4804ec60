// SPDX-License-Identifier: Apache-2.0
// Points in 3-D boxes on a GPU.
#pragma once

#include "kernels/cuda/cuda.h"
#include "ops/boxes3d/box3d.h"

namespace polyop {

/// Reads `count` rows whose z is that of the bottom, so that sines and cosines are computed once for each box.
template <class T>
Status PrepareBoxes(const CudaContext& cuda, const T* boxes, int64_t count, Box3d* prepared) {
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { prepared[i] = Box3d::OfBottom(boxes + 7 * i); });
}

/// Finds the points in a box in ascending order of their indices, with a block of kThreadsPerBlock threads.
class PointsInside {
 public:
  /// Maximum number of indices per visit.
  static constexpr int kMax = 8 * kThreadsPerBlock;
  static constexpr int64_t kSharedBytes = 4 * (kThreadsPerBlock + kMax + 1) + 2 * 16;

  POLYOP_DEVICE explicit PointsInside(Block& block)
      : block_(block),
        before_(block.Shared<int32_t>(kThreadsPerBlock + 1)),
        inside_(block.Shared<int32_t>(kMax)),
        bits_(block) {}

  /// Calls visit(indices, count) for rounds of up to kMax points, skipping empty ones, until it returns false. All
  /// threads call it, outside of a ForThreads phase.
  template <class T, class Visit>
  POLYOP_DEVICE void ForEachRound(const Box3d& box, const T* points, int64_t count, const Visit& visit) {
    for (int64_t first = 0; first < count; first += kMax) {
      block_.ForThreads([&](int t) {
        uint32_t mine = 0;
        for (int k = 0; k < kRun; ++k) {
          const int64_t i = first + t * kRun + k;
          if (i < count && box.Holds(points + 3 * i)) mine |= uint32_t{1} << k;
        }
        bits_[t] = mine;
        before_[t] = PopCount(mine);
      });
      block_.ForThreads([&](int t) {
        if (t != 0) return;
        int32_t sum = 0;
        for (int i = 0; i < kThreadsPerBlock; ++i) {
          const int32_t number = before_[i];
          before_[i] = sum;
          sum += number;
        }
        before_[kThreadsPerBlock] = sum;
      });
      block_.ForThreads([&](int t) {
        int32_t at = before_[t];
        for (int k = 0; k < kRun; ++k) {
          if (bits_[t] >> k & 1) inside_[at++] = static_cast<int32_t>(first + t * kRun + k);
        }
      });
      const int32_t found = before_[kThreadsPerBlock];
      if (found > 0 && !visit(inside_, found)) return;
    }
  }

 private:
  static constexpr int kRun = kMax / kThreadsPerBlock;  // points that a thread tests per round

  Block& block_;
  int32_t* const before_;  // exclusive prefix sums of the threads' counts, then the total
  int32_t* const inside_;
  Block::Local<uint32_t> bits_;
};

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
// The points that the cells of a box take, on the GPU.
#pragma once

#include "ops/boxes3d/box3d_cuda.h"
#include "ops/boxes3d/roiaware_pool3d/box_cells.h"

namespace polyop {

/// Visits the points of a box by ascending index, in rounds, with a block of kThreadsPerBlock threads.
class TakenPoints {
 public:
  static constexpr int64_t kSharedBytes = PointsInside::kSharedBytes + 2 * (4 * PointsInside::kMax + 16);

  POLYOP_DEVICE explicit TakenPoints(Block& block)
      : block_(block),
        search_(block),
        cell_of_(block.Shared<int32_t>(PointsInside::kMax)),
        target_cell_(block.Shared<int32_t>(PointsInside::kMax)) {}

  /// Calls visit(points, targets, count) for each round: targets[k] is the cell that takes points[k], or -1 if it is
  /// full. A cell takes `max_points`; cell_counts are the numbers that it has taken, which are 0 before the first
  /// round. All threads call it, outside of a ForThreads phase.
  template <class T, class Visit>
  POLYOP_DEVICE void ForEachRound(const BoxCells& cells, const T* points, int64_t count, int64_t max_points,
                                  int32_t* cell_counts, const Visit& visit) {
    search_.ForEachRound(cells.box, points, count, [&](const int32_t* inside, int32_t num_inside) {
      block_.ForThreads([&](int t) {
        for (int32_t k = t; k < num_inside; k += kThreadsPerBlock) {
          cell_of_[k] = static_cast<int32_t>(cells.Of(points + 3 * int64_t{inside[k]}));
        }
      });
      block_.ForThreads([&](int t) {
        for (int32_t k = t; k < num_inside; k += kThreadsPerBlock) {
          int64_t rank = cell_counts[cell_of_[k]];
          for (int32_t before = 0; before < k; ++before) rank += cell_of_[before] == cell_of_[k];
          target_cell_[k] = rank < max_points ? cell_of_[k] : -1;
        }
      });
      block_.ForThreads([&](int t) {
        for (int32_t k = t; k < num_inside; k += kThreadsPerBlock) {
          bool last = target_cell_[k] >= 0;  // whether this is the last point that its cell takes in this round
          for (int32_t after = k + 1; after < num_inside && last; ++after) {
            last = target_cell_[after] != target_cell_[k];
          }
          if (!last) continue;
          int32_t num_taken = 1;
          for (int32_t before = 0; before < k; ++before) num_taken += target_cell_[before] == target_cell_[k];
          cell_counts[target_cell_[k]] += num_taken;
        }
      });
      visit(inside, target_cell_, num_inside);
      return true;
    });
  }

 private:
  Block& block_;
  PointsInside search_;
  int32_t *const cell_of_, *const target_cell_;
};

}  // namespace polyop
